"""All tiers in order."""
from __future__ import annotations
from curation.records import Outcome
from curation.verify.answers.policy import ApproximationPolicy, Comparison


def compare_answers(reference: str, answer: str, lang: str, policy: ApproximationPolicy) -> Comparison:
    a, b = " ".join(reference.split()), " ".join(answer.split())
    same = a == b and a != ""
    return Comparison(Outcome.CORRECT if same else Outcome.WRONG, "text", a, b, False)


def compare_responses(reference: str, answer: str, lang: str, policy: ApproximationPolicy) -> Comparison:
    return compare_answers(reference, answer, lang, policy)


def why_unusable(reference: str, lang: str) -> str | None:
    return None if reference.strip() else "it is empty"
