"""The state that the parts of the matcher share: the policy, the question, the deciding tier, and the mark of doubt."""

from __future__ import annotations

from curation.verify.answers.forms import Form
from curation.verify.answers.policy import ApproximationPolicy
from curation.verify.answers.question import NOTHING_ASKED, QuestionForm


class ComparisonState:
    """The state of one comparison. ``method`` names the tier that decided last, ``doubtful`` asks for a second look."""

    def __init__(
        self,
        policy: ApproximationPolicy,
        arbitrary_names: frozenset[str] = frozenset(),
        question: QuestionForm = NOTHING_ASKED,
    ) -> None:
        self.policy = policy
        self.question = question
        self.arbitrary_names = arbitrary_names
        """Names that a text calls arbitrary: "for some integer t"."""
        self.method = "form"
        self.doubtful = False

    def decide(self, method: str, equal: bool) -> bool:
        """Note the tier that decides and return the verdict."""
        self.method = method
        return equal

    def match(self, reference: Form, answer: Form) -> bool:
        """Return whether two forms are the same answer."""
        raise NotImplementedError
