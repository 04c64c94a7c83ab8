"""Translating problems through a policy, checked; what fails is tried again with the reason, then left as it is.

Invariants: every problem that is asked for is accounted for, translated or failed with its reason, also where the
model's servers refuse it (too many of these end the run); a translation that is returned broke no invariant but those
that a reader overruled, which its row names; its id is that of its own text, its group its original's, so that splits
keep the two together. The policy's attempt index is the number of the try. Which problems are asked for: `selection`.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from curation.config.languages import TranslationSettings
from curation.policies.failure_budget import FailureBudget
from curation.prompts.translating import read_reply
from curation.records import ConfigError, Domain, Policy, PromptRequest, RequestRefused, problem_id
from curation.translation.answers import ChecksReferences, is_words
from curation.translation.back_solving import Agreement, BackSolver, solving_request
from curation.translation.invariants import CheckedText, check_translation, reasons
from curation.translation.reader import Reader, Reading
from curation.translation.violations import Violation
from curation.verify.math_judge import MathJudge

Row = Mapping[str, Any]
REFUSED = "refused"
"""In the place of a broken invariant: the model's servers refused the request."""

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
    """The translations of a set: rows with the columns of the originals, failures, and counts.

    ``counts`` has asked, translated, failed, retried (translated at a later try), ``to.fr`` … per language,
    ``broke.numbers`` … per invariant over all tries, and of a reader over all tries ``reader.refused``,
    ``reader.overruled`` and ``reader.undecided`` (too few readable votes).
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    failed: list[FailedTranslation] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _TranslationResult:
    row: dict[str, Any] | None
    failed: FailedTranslation | None
    tries: int
    broke: tuple[str, ...]
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True, slots=True)
class _Checks:
    """Who looks at a translation: the verifier always, the others where the settings ask for them."""

    judge: ChecksReferences
    back_solver: BackSolver | None
    reader: Reader | None


@dataclass(slots=True)
class _Examined:
    """What one try broke, and what was found out on the way."""

    violations: list[Violation]
    reading: Reading | None = None
    solved: Agreement | None = None


async def translate(
    rows: Sequence[Row],
    targets: Mapping[str, str],
    policy: Policy,
    settings: TranslationSettings,
    source: str = "en",
    advance: Callable[[int], None] = lambda _: None,
    solver: Policy | None = None,
    reader: Policy | None = None,
) -> Translations:
    """Translate those of the rows that ``targets`` names, several at once.

    Args:
        rows: problems with at least ``id`` and ``statement``; ``group``, ``answer``, ``choices`` and the other columns
            of `records.PROBLEM` are used where they are there. Columns of no problem are carried over as they are.
        targets: id → language, from `selection.choose_problems`.
        policy: an entered policy that is asked with the translating prompt (`asking.RenderedPrompt`, recorded
            translations).
        advance: called with 1 whenever a problem is translated or given up.
        solver: an entered policy with a solving prompt; needed where ``settings.back_solving`` asks for attempts.
        reader: an entered policy with the reading prompt; None leaves the rules' word.

    Raises:
        ConfigError: back-solving is asked for without a solver.
        PolicyError: the policy cannot answer, or refuses too many problems.
    """
    if settings.back_solving and solver is None:
        raise ConfigError("`back_solving` needs a policy that solves: name one (--solver), or set it to 0.")
    selected = [row for row in rows if row["id"] in targets]
    gate = asyncio.Semaphore(max(1, policy.in_flight))
    translations = Translations()
    budget = FailureBudget(settings.max_failed, len(selected), "--max-failed")
    with MathJudge(workers=1) as judge:
        checks = _Checks(
            judge,
            BackSolver(solver, judge, settings.back_solving, settings.back_solving_level)
            if solver is not None and settings.back_solving
            else None,
            _reader_of(reader, settings, len(selected)) if reader is not None else None,
        )

        async def translate_when_free(row: Row) -> _TranslationResult:
            async with gate:
                target = targets[row["id"]]
                try:
                    result = await _translate_row(row, target, policy, settings, source, checks)
                    budget.count_answer()
                except RequestRefused as refused:
                    budget.count_refusal(row["id"], refused)
                    failed = FailedTranslation(row["id"], target, 0, refused.reason, (REFUSED,))
                    result = _TranslationResult(None, failed, 0, (REFUSED,))
            advance(1)
            return result

        tasks = [asyncio.create_task(translate_when_free(row)) for row in selected]
        try:
            for task in tasks:
                _count(translations, await task)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return translations


def _reader_of(policy: Policy, settings: TranslationSettings, count: int) -> Reader:
    """Return the reader of a set's translations, which has a failure budget of its own."""
    budget = FailureBudget(settings.max_failed, count * settings.tries, "--max-failed")
    return Reader(policy, settings.reads, settings.reader_threshold, overrule=settings.overrule, budget=budget)


def _count(translations: Translations, result: _TranslationResult) -> None:
    """Add one problem's result to the rows or failures, and to the counts."""
    counts = translations.counts
    counts["asked"] += 1
    counts.update(f"broke.{name}" for name in result.broke)
    counts.update(f"reader.{reading.outcome}" for reading in result.readings if reading.outcome)
    if result.row is not None:
        translations.rows.append(result.row)
        counts.update(["translated", f"to.{result.row['lang']}"] + (["retried"] if result.tries > 1 else []))
    elif result.failed is not None:
        translations.failed.append(result.failed)
        counts["failed"] += 1


async def _translate_row(
    row: Row,
    target: str,
    policy: Policy,
    settings: TranslationSettings,
    source: str,
    checks: _Checks,
) -> _TranslationResult:
    """Translate one problem in up to ``settings.tries`` tries."""
    original = _text_of(row)
    previous: str | None = None
    why: str = "the policy gave no translation"
    last: tuple[str, ...] = ()
    broke: list[str] = []
    readings: list[Reading] = []
    tries = 0
    for index in range(settings.tries):
        request = _request(row, original, target, source, previous, why if index else None)
        completion = await policy.answer(request, index)
        if completion is None:
            break
        tries += 1
        statement, answer, options = read_reply(completion.text or "")
        if statement is None:
            previous, why, last = None, "no text stood between <translation> and </translation>", ("reply",)
            broke += last
            continue
        translated = CheckedText(statement, answer if _needs_translation(original.answer) else original.answer, options)
        found = await _examine(row, original, translated, target, policy, settings, source, checks, index)
        if found.reading is not None:
            readings.append(found.reading)
        if not found.violations:
            made = _row_of(row, translated, target, policy, tries, found)
            return _TranslationResult(made, None, tries, tuple(broke), tuple(readings))
        previous, why = statement, reasons(found.violations)
        last = tuple(dict.fromkeys(violation.invariant for violation in found.violations))
        broke += last
    failed = FailedTranslation(row["id"], target, tries, why, last)
    return _TranslationResult(None, failed, tries, tuple(broke), tuple(readings))


async def _examine(
    row: Row,
    original: CheckedText,
    translated: CheckedText,
    target: str,
    policy: Policy,
    settings: TranslationSettings,
    source: str,
    checks: _Checks,
    index: int,
) -> _Examined:
    """Check one try: by the rules, the reader, a translation back and the solver, each where those before accept it."""
    judge, domain = checks.judge, row.get("domain")
    found = _Examined(await asyncio.to_thread(check_translation, original, translated, target, judge, source))
    if checks.reader is not None:
        found.reading, found.violations = await checks.reader.review(
            original, translated, (source, target), found.violations, domain
        )
    if not found.violations and settings.back_translation:
        found.violations = await _check_back_translation(
            row, original, translated, target, policy, index, source, judge
        )
    if not found.violations and checks.back_solver is not None:
        found.solved, found.violations = await checks.back_solver.compare(
            solving_request(row["id"], original.statement, domain, source),
            solving_request(f"{row['id']}#{target}{index}", translated.statement, domain, target),
            original.answer,
        )
    return found


def _text_of(row: Row) -> CheckedText:
    return CheckedText(row["statement"], row.get("answer"), tuple(row.get("choices") or ()))


def _needs_translation(answer: str | None) -> bool:
    """Return whether the answer has to be translated."""
    return answer is not None and is_words(answer)


def _request(
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


async def _check_back_translation(
    row: Row,
    original: CheckedText,
    translated: CheckedText,
    target: str,
    policy: Policy,
    index: int,
    source: str,
    judge: ChecksReferences,
) -> list[Violation]:
    """Translate the translation back, and return what is wrong with the result.

    It is checked against the original's numbers and formulas. The length, and sentences that are the same as before,
    say nothing here: it is in the original's language.
    """
    details = {"target": source, "source": target}
    request = PromptRequest(
        f"{row['id']}{_BACK}", translated.statement, Domain(row.get("domain") or Domain.MATH), target, details
    )
    completion = await policy.answer(request, index)
    statement = read_reply(completion.text or "")[0] if completion is not None else None
    if statement is None:
        return [Violation("back_translation", "there was none")]
    violations = await asyncio.to_thread(
        check_translation, CheckedText(translated.statement), CheckedText(statement), source, judge, target
    )
    against_original = await asyncio.to_thread(
        check_translation, CheckedText(original.statement), CheckedText(statement), source, judge, source
    )
    violations += [violation for violation in against_original if violation.invariant in _COMPARED_BACK]
    return [Violation("back_translation", f"{violation.invariant}: {violation.evidence}") for violation in violations]


_COMPARED_BACK = ("numbers", "units", "formulas", "variables", "code", "choices")


def _row_of(
    row: Row, translated: CheckedText, target: str, policy: Policy, tries: int, found: _Examined
) -> dict[str, Any]:
    """Return the translated problem's row, in the columns of the original."""
    domain = row.get("domain") or Domain.MATH.value
    meta = json.loads(row.get("meta") or "{}")
    meta["translation"] = {
        "of": row["id"],
        "by": policy.key.policy,
        "prompt": policy.key.prompt,
        "tries": tries,
    }
    if found.reading is not None:
        meta["translation"]["reader"] = found.reading.record()
    if found.solved is not None:
        meta["translation"]["back_solving"] = found.solved.record()
    translated_row = {
        **row,
        "id": problem_id(translated.statement, translated.choices or None, domain),
        "group": row.get("group") or row["id"],
        "statement": translated.statement,
        "answer": translated.answer,
        "lang": target,
        "raw_statement": row["statement"],
        "raw_answer": row.get("answer") if translated.answer != row.get("answer") else None,
        "solution": None,
        "meta": json.dumps(meta, ensure_ascii=False),
    }
    if "choices" in row:
        translated_row["choices"] = list(translated.choices) or None
    return translated_row
