"""Translating problems through a policy, checked; what fails is tried again with the reason, then left as it is.

Invariants: every problem that is asked for is accounted for, translated or failed with its reason; a translation that
is returned broke no invariant; its id is that of its own text, its group its original's, so that splits keep the two
together. The policy's attempt index is the number of the try. Which problems are asked for: `selection`.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from curation.config.languages import TranslationSettings
from curation.languages.translation.answers import ChecksReferences, is_words
from curation.languages.translation.invariants import CheckedText, check_translation, reasons
from curation.languages.translation.violations import Violation
from curation.prompts.translating import read_reply
from curation.records import Domain, Policy, PromptRequest, problem_id
from curation.verify.math_judge import MathJudge

Row = Mapping[str, Any]
_BACK = "#back"
"""Behind a problem's id: the request to translate its translation back."""


@dataclass(frozen=True, slots=True)
class FailedTranslation:
    """A problem that stays as it is: its id, the language, the tries, and what the last one broke.

    Example: ``FailedTranslation("5f0c…", "it", 3, "numbers: missing from the translation: 18", ("numbers",))``
    """

    id: str
    target: str
    tries: int
    why: str
    invariants: tuple[str, ...] = ()


@dataclass(slots=True)
class Translations:
    """What came of a set: rows with the columns of the originals, failures, and counts.

    ``counts`` has asked, translated, failed, retried (translated at a later try), ``to.fr`` … per language, and
    ``broke.numbers`` … per invariant over all tries.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    failed: list[FailedTranslation] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Made:
    row: dict[str, Any] | None
    failed: FailedTranslation | None
    tries: int
    broke: tuple[str, ...]


async def translate(
    rows: Sequence[Row],
    targets: Mapping[str, str],
    policy: Policy,
    settings: TranslationSettings,
    source: str = "en",
    advance: Callable[[int], None] = lambda _: None,
) -> Translations:
    """Translate those of the rows that ``targets`` names.

    Args:
        rows: problems with at least ``id`` and ``statement``; ``group``, ``answer``, ``choices`` and the other columns
            of `records.PROBLEM` are used where they are there. Columns of no problem are carried over as they are.
        targets: id → language, from `selection.chosen`.
        policy: an entered policy that is asked with the translating prompt (`asking.RenderedPrompt`, recorded
        translations).
        advance: told 1 whenever a problem is translated or given up.

    Raises:
        PolicyError: the policy cannot answer.
    """
    wanted = [row for row in rows if row["id"] in targets]
    gate = asyncio.Semaphore(max(1, policy.in_flight))
    found = Translations()
    with MathJudge(workers=1) as judge:

        async def one(row: Row) -> _Made:
            async with gate:
                made = await _translated(row, targets[row["id"]], policy, settings, source, judge)
            advance(1)
            return made

        tasks = [asyncio.create_task(one(row)) for row in wanted]
        try:
            for task in tasks:
                _count(found, await task)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return found


def _count(found: Translations, made: _Made) -> None:
    counts = found.counts
    counts["asked"] += 1
    counts.update(f"broke.{name}" for name in made.broke)
    if made.row is not None:
        found.rows.append(made.row)
        counts.update(["translated", f"to.{made.row['lang']}"] + (["retried"] if made.tries > 1 else []))
    elif made.failed is not None:
        found.failed.append(made.failed)
        counts["failed"] += 1


async def _translated(
    row: Row, target: str, policy: Policy, settings: TranslationSettings, source: str, judge: ChecksReferences
) -> _Made:
    """Return one problem through up to ``settings.tries`` tries."""
    original = _text_of(row)
    previous: str | None = None
    why: str = "the policy gave no translation"
    last: tuple[str, ...] = ()
    broke: list[str] = []
    tries = 0
    for index in range(settings.tries):
        asked = _asked(row, original, target, source, previous, why if index else None)
        answered = await policy.answer(asked, index)
        if answered is None:
            break
        tries += 1
        statement, answer, options = read_reply(answered.text or "")
        if statement is None:
            previous, why, last = None, "no text stood between <translation> and </translation>", ("reply",)
            broke += last
            continue
        made = CheckedText(statement, answer if _said(original.answer) else original.answer, options)
        broken = await asyncio.to_thread(check_translation, original, made, target, judge, source)
        if not broken and settings.back_translation:
            broken = await _back(row, original, made, target, policy, index, source, judge)
        if not broken:
            return _Made(_row_of(row, made, target, policy, tries), None, tries, tuple(broke))
        previous, why = statement, reasons(broken)
        last = tuple(dict.fromkeys(one.invariant for one in broken))
        broke += last
    return _Made(None, FailedTranslation(row["id"], target, tries, why, last), tries, tuple(broke))


def _text_of(row: Row) -> CheckedText:
    return CheckedText(row["statement"], row.get("answer"), tuple(row.get("choices") or ()))


def _said(answer: str | None) -> bool:
    """Return whether the answer has to be translated."""
    return answer is not None and is_words(answer)


def _asked(
    row: Row, original: CheckedText, target: str, source: str, previous: str | None, why: str | None
) -> PromptRequest:
    details = {"target": target, "source": source}
    if original.answer is not None and is_words(original.answer):
        details["answer"] = original.answer
    if original.choices:
        details["options"] = "\n".join(original.choices)
    if why is not None:
        details |= {"reasons": why, "previous": previous or ""}
    return PromptRequest(row["id"], original.statement, Domain(row.get("domain") or Domain.MATH), source, details)


async def _back(
    row: Row,
    original: CheckedText,
    made: CheckedText,
    target: str,
    policy: Policy,
    index: int,
    source: str,
    judge: ChecksReferences,
) -> list[Violation]:
    """Return what is wrong with the translation's own translation; it is checked against the original's numbers and
    formulas.

    The length, and sentences that are the same as before, say nothing here: the original's language is wanted.
    """
    details = {"target": source, "source": target}
    asked = PromptRequest(
        f"{row['id']}{_BACK}", made.statement, Domain(row.get("domain") or Domain.MATH), target, details
    )
    answered = await policy.answer(asked, index)
    statement = read_reply(answered.text or "")[0] if answered is not None else None
    if statement is None:
        return [Violation("back_translation", "there was none")]
    broken = await asyncio.to_thread(
        check_translation, CheckedText(made.statement), CheckedText(statement), source, judge, target
    )
    again = await asyncio.to_thread(
        check_translation, CheckedText(original.statement), CheckedText(statement), source, judge, source
    )
    broken += [one for one in again if one.invariant in _KEPT]
    return [Violation("back_translation", f"{one.invariant}: {one.evidence}") for one in broken]


_KEPT = ("numbers", "units", "formulas", "variables", "code", "choices")


def _row_of(row: Row, made: CheckedText, target: str, policy: Policy, tries: int) -> dict[str, Any]:
    """Return the translated problem's row, in the columns of the original."""
    domain = row.get("domain") or Domain.MATH.value
    meta = json.loads(row.get("meta") or "{}")
    meta["translation"] = {
        "of": row["id"],
        "by": policy.key.policy,
        "prompt": policy.key.prompt,
        "tries": tries,
    }
    new = {
        **row,
        "id": problem_id(made.statement, made.choices or None, domain),
        "group": row.get("group") or row["id"],
        "statement": made.statement,
        "answer": made.answer,
        "lang": target,
        "raw_statement": row["statement"],
        "raw_answer": row.get("answer") if made.answer != row.get("answer") else None,
        "solution": None,
        "meta": json.dumps(meta, ensure_ascii=False),
    }
    if "choices" in row:
        new["choices"] = list(made.choices) or None
    return new
