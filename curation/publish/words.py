"""A data card's words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from curation.languages.names import NAMES
from curation.languages.vocabulary import languages
from curation.records import DropReason

REASON_WORDS: Mapping[str, str] = {
    DropReason.BAD_ROW: "cannot be read",
    DropReason.MISSING_STATEMENT: "no statement",
    DropReason.MISSING_ANSWER: "no answer",
    DropReason.MISSING_FIGURE: "needs a figure that is not there",
    DropReason.PROOF: "asks for a proof",
    DropReason.MULTI_PART: "several questions in one",
    DropReason.YES_NO: "yes or no, true or false",
    DropReason.DEBRIS: "unreadable debris",
    DropReason.TEXTUAL_ANSWER: "answer in words",
    DropReason.ANSWER_IN_STATEMENT: "statement gives the answer away",
    DropReason.WRONG_LANGUAGE: "another language",
    DropReason.OWN_RULE: "a rule of the set's maker",
    DropReason.UNUSABLE: "cannot be used as it is, by a model's votes",
    DropReason.UNVERIFIABLE_ANSWER: "answer the verifier cannot read",
    DropReason.UNPROVEN_REWRITING: "answer that only a rewriting makes readable",
    DropReason.CONFLICTING_ANSWERS: "copies with conflicting answers",
    DropReason.CONTAMINATED: "overlaps with a benchmark",
    DropReason.FAULTY_PREMISES: "premises missing or contradictory, by a model's votes",
    DropReason.REJECTED: "rejected by a person",
    DropReason.RESERVED: "made for a later refresh, not measured yet",
    DropReason.SAMPLING_FAILED: "refused by the model's servers",
    DropReason.INTERACTIVE: "program that talks with a judge",
    DropReason.ASKS_FUNCTION: "function instead of a program",
    DropReason.NEEDS_FILES: "program that needs files",
    DropReason.SEVERAL_OUTPUTS: "several right outputs",
    DropReason.UNTRANSLATED: "no translation was accepted; the problem itself stays",
    DropReason.NO_VARIANT: "no variant was accepted; the problem itself stays",
    DropReason.OVER_QUOTA: "over the size asked for",
}
"""Words of drop reasons whose name is not clear by itself."""

COLUMN_WORDS: Mapping[str, str] = {
    "id": "the problem's name: a hash of its normalised content, the same in every run and from every source",
    "group": "id of the original; translations and language variants share it, splits should never part it",
    "domain": "`math` or `code`",
    "statement": "the problem, as it is asked",
    "answer": "the reference answer",
    "choices": "options of a multiple-choice problem, where they came in a field of their own",
    "solution": "a worked solution, where the source has one",
    "lang": "language, ISO 639-1",
    "source": "name of the source, as in the table of sources",
    "row": "position in that source, from 0",
    "license": "licence of the source",
    "weight": "the source's mixing weight",
    "raw_statement": "the statement before it was rewritten; null where nothing was",
    "raw_answer": "the answer before it was rewritten; null where nothing was",
    "meta": "further columns of the source, as a JSON object",
    "policy": "whose attempts the pass rate counts, `model@revision`",
    "attempts": "attempts made by that policy",
    "judged": "attempts that the verifier could judge",
    "correct": "attempts that reach the reference answer",
    "pass_rate": "the policy's pass rate: correct / judged",
    "unbiased_pass_rate": "the pass rate without the bias of early stopping: of all orders of these attempts that "
    "stop nowhere earlier, the share that begins with a correct one; the pass rate where all attempts were made",
    "pass_rate_low": "lower end of the 95 % Wilson interval of correct and judged; what the verifier failed on counts "
    "as wrong",
    "pass_rate_high": "upper end of that interval; what the verifier failed on counts as correct",
    "decided_by": "how these attempts decided: `all attempts`; `certain after 9 of 16`, when no outcome of the others "
    "could change it; or `foreseen at 0.93 after 9 of 32`, by these attempts and those "
    "of other policies, which count in no other column",
    "informed_by": "whose judged attempts the decision rests on, as `policy 9, other 16`: the row's policy, and others "
    "where the decision was foreseen with theirs",
    "measured_on": "the day on which these attempts were begun, UTC",
    "first_policy": "policy of stage 1 where there are two stages, else null",
    "first_pass_rate": "pass rate of stage 1 where there are two stages, else null",
    "translation_of": "id of the problem that this is a translation of; null if it is none",
    "pass_rate_of": "id of the problem whose pass rate this is: a translation that was not measured has that of its "
    "original; null if it is the row's own",
    "accepted": "answers that a model took for the reference, where the verifier was in doubt: each is as good as "
    "`answer`, also in training and in every export; empty where there are none",
    "also_from": "where its merged copies were, exact and near ones: source, row and licence of each; empty where "
    "there are none",
}


@cache
def language_names() -> Mapping[str, str]:
    """Return the known languages' English names by code."""
    return {**NAMES, **{language.code: language.name for language in languages()}}


def count_phrase(number: int, noun: str) -> str:
    """Return a number and its noun, as ``1,250 rows`` or ``no rows``."""
    word = noun if number == 1 else f"{noun}s"
    return f"{number:,} {word}" if number else f"no {word}"


def share(part: float, whole: float) -> str:
    """Return a percentage, never rounded to 0 or 100; a dash without total."""
    if whole == 0:
        return "–"
    percent = 100 * part / whole
    if 0 < percent < 0.05:
        return "< 0.1 %"
    if 99.95 <= percent < 100:
        return "> 99.9 %"
    return f"{percent:.1f} %"


def capital(text: str) -> str:
    """Return the text with its first letter capitalised."""
    return text[:1].upper() + text[1:]


def by_count(reasons: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return reasons that occurred by falling count, then name."""
    return sorted(((r, n) for r, n in reasons.items() if n), key=lambda pair: (-pair[1], pair[0]))


def reason_words(reason: str) -> str:
    """Return a drop reason in words."""
    return REASON_WORDS.get(reason, reason.replace("_", " "))


def by_reason(reasons: Mapping[str, int]) -> str:
    """Return counts by reason, as in ``5 never solved, 2 too easy``."""
    return ", ".join(f"{count:,} {reason_words(reason)}" for reason, count in by_count(reasons)) or "none"
