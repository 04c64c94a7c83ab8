"""What the parts of the matcher share: the policy, the verdict's explanation, and the mark of doubt."""

from __future__ import annotations

from curation.verify.answers.forms import Form
from curation.verify.answers.policy import ApproximationPolicy


class ComparisonState:
    """The state of one comparison. ``how`` names the tier that decided last, ``doubtful`` asks for a second look."""

    def __init__(self, policy: ApproximationPolicy, declared: frozenset[str] = frozenset()) -> None:
        self.policy = policy
        self.declared = declared
        """Names that a text calls arbitrary: "for some integer t"."""
        self.how = "form"
        self.doubtful = False

    def decided(self, how: str, equal: bool) -> bool:
        """Note the tier, pass the verdict on."""
        self.how = how
        return equal

    def match(self, reference: Form, answer: Form) -> bool:
        """Whether two forms are the same answer."""
        raise NotImplementedError
