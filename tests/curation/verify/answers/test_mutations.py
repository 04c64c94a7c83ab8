"""References with one token changed are refused, references written in another way accepted; both by the hundred.

Of our own references; those of the shared data are for the gates `verify/near-misses-accepted` and
`verify/rewritings-refused`. No change is accepted that `oracle` does not know for the same answer.
"""

from __future__ import annotations

import pytest

from curation.records import Outcome
from curation.verify import answers
from curation.verify.answers.words import parse_boolean, parse_choice
from tests.curation.verify.answers.corpus import own_references
from tests.curation.verify.answers.endless import ending_within
from tests.curation.verify.answers.mutations import mutations
from tests.curation.verify.answers.rewritings import rewritings

MAX_CPU_S = 60
"""CPU seconds of one comparison; none takes a tenth. What needs more is taken for endless."""


def outcome(reference: str, answer: str, lang: str) -> Outcome:
    with ending_within(MAX_CPU_S, f"{reference} ~ {answer}"):
        return answers.compare(reference, answer, lang=lang).outcome


def test_rewritten_references_are_accepted() -> None:
    rewritten = [(*one, name, text) for one in own_references()[::4] for name, text in rewritings(one[0]).items()]
    assert len({name for _, _, name, _ in rewritten}) >= 40
    assert [one for one in rewritten if outcome(one[0], one[3], one[1]) is not Outcome.CORRECT] == []


def test_comparing_is_reflexive_and_symmetric() -> None:
    for reference, lang in own_references()[::6]:
        assert outcome(reference, f" $ {reference} $ ", lang) is Outcome.CORRECT
        for one in mutations(reference, seed=1):
            if "." in one.reference + one.changed or "%" in reference:
                continue  # what rounds to what has a direction
            assert outcome(reference, one.changed, lang) is outcome(one.changed, reference, lang), one


@pytest.mark.parametrize(
    "tail", [r" \text{ for } q > 7", r" \text{, unless } 7 \text{ blargs}", r" \text{ zumbles } q^2"]
)
def test_nothing_foreign_after_an_answer_is_dropped(tail: str) -> None:
    for reference, lang in own_references()[::2]:
        if parse_choice(reference) or parse_boolean(reference):
            continue  # a letter may precede any text, yes and no a remark
        assert outcome(reference, f"{reference.strip().strip('$')}{tail}", lang) is Outcome.WRONG, reference
