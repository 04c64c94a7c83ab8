"""References with one token changed are refused, references written in another way accepted; both by the hundred.

Fast: our own references. Slow: the real ones of the shared data, with two draws. No change is accepted that `oracle`
does not know for the same answer.
"""

from __future__ import annotations

from collections import Counter

import pytest

from curation.records import Outcome
from curation.verify import answers
from tests.curation.verify.answers.corpus import Reference, has_real_references, own_references, real_references
from tests.curation.verify.answers.endless import ending_within
from tests.curation.verify.answers.mutations import Mutation, mutations
from tests.curation.verify.answers.oracle import is_same_answer
from tests.curation.verify.answers.rewritings import rewritings

MAX_CPU_S = 60
"""CPU seconds of one comparison; none takes a tenth. What needs more is taken for endless."""

real = pytest.mark.skipif(not has_real_references(), reason="the shared data is not at hand")


def compare(reference: str, answer: str, lang: str) -> answers.AnswerComparison:
    with ending_within(MAX_CPU_S, f"{reference} ~ {answer}"):
        return answers.compare(reference, answer, lang=lang)


def near_misses(references: list[Reference], seed: int) -> tuple[list[Mutation], Counter[str]]:
    """Return the changes that were accepted and are no identities, and how many of each kind there were."""
    accepted, tried = [], Counter[str]()
    for reference, lang in references:
        for mutation in mutations(reference, seed):
            tried[mutation.kind] += 1
            if compare(mutation.reference, mutation.changed, lang).outcome is Outcome.CORRECT:
                accepted.append(mutation)
    wrong = [mutation for mutation in accepted if is_same_answer(mutation.reference, mutation.changed) is None]
    counts = Counter(mutation.kind for mutation in wrong)
    print("\n".join(f"{kind:15}{tried[kind]:6}{counts[kind]:6}" for kind in tried))
    return wrong, tried


def refused_rewritings(references: list[Reference]) -> tuple[list[tuple[str, str, str]], Counter[str]]:
    """Return (rewriting, reference, text) of every equal text that was refused, and how many of each were tried."""
    refused, tried = [], Counter[str]()
    for reference, lang in references:
        for name, text in rewritings(reference).items():
            tried[name] += 1
            if compare(reference, text, lang).outcome is not Outcome.CORRECT:
                refused.append((name, reference, text))
    return refused, tried


def test_changed_references_of_our_own_are_refused() -> None:
    wrong, tried = near_misses(own_references(), seed=0)
    assert sum(tried.values()) > 1500
    assert not wrong


def test_rewritten_references_of_our_own_are_accepted() -> None:
    refused, tried = refused_rewritings(own_references()[::4])
    assert len(tried) >= 40
    assert not refused


def test_comparing_is_reflexive_and_symmetric() -> None:
    for reference, lang in own_references()[::3]:
        assert compare(reference, f" $ {reference} $ ", lang).outcome is Outcome.CORRECT
        for mutation in mutations(reference, seed=1):
            if "." in mutation.reference + mutation.changed or "%" in reference:
                continue  # what rounds to what has a direction
            there, back = (
                compare(*pair, lang) for pair in ((reference, mutation.changed), (mutation.changed, reference))
            )
            assert there.outcome is back.outcome, mutation


@real
@pytest.mark.slow
def test_changed_real_references_are_refused() -> None:
    wrong, tried = near_misses(list(real_references()), 0)
    assert sum(tried.values()) > 5000
    assert not wrong


@real
@pytest.mark.slow
def test_rewritten_real_references_are_accepted() -> None:
    refused, tried = refused_rewritings(list(real_references()))
    assert sum(tried.values()) > 10_000
    assert not refused
