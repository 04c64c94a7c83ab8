"""Which settings decide how many rows leave for a drop reason."""

from __future__ import annotations

from collections.abc import Mapping

from curation.records import DropReason

_RULES = ("statements.drop_from", "statements.disabled")
_BANDS = ("stage1.band.{}", "stage2.band.{}")


def _band(name: str) -> tuple[str, ...]:
    return tuple(key.format(name) for key in _BANDS)


SETTINGS_OF: Mapping[DropReason, tuple[str, ...]] = {
    DropReason.BAD_ROW: ("sources.N.on_bad_row", "sources.N.bad_rows"),
    DropReason.MISSING_STATEMENT: ("sources.N.columns.statement", "statements.min_letters"),
    DropReason.MISSING_ANSWER: ("sources.N.columns.answer",),
    **dict.fromkeys(
        (
            DropReason.TRUNCATED,
            DropReason.NOT_A_PROBLEM,
            DropReason.MISSING_FIGURE,
            DropReason.PROOF,
            DropReason.MULTI_PART,
            DropReason.YES_NO,
            DropReason.REFERS_ELSEWHERE,
            DropReason.DEBRIS,
            DropReason.HEDGED_ANSWER,
            DropReason.TEXTUAL_ANSWER,
            DropReason.ANSWER_IN_STATEMENT,
            DropReason.GUESSWORK,
        ),
        _RULES,
    ),
    DropReason.WRONG_LANGUAGE: ("statements.languages",),
    DropReason.UNUSABLE: ("statements.unusable_from", "statements.suspected_from", "questions.NAME.threshold"),
    DropReason.CHOICES_NEEDED: ("statements.disabled", "questions.NAME.model"),
    DropReason.CHOICES_UNRESOLVED: ("statements.disabled",),
    DropReason.UNVERIFIABLE_ANSWER: (),
    DropReason.UNPROVEN_REWRITING: ("statements.clean",),
    DropReason.VERIFIER_FAILED: ("verify.limit_s", "verify.memory_mb", "verify.retries"),
    DropReason.DUPLICATE: (),
    DropReason.CONFLICTING_ANSWERS: (),
    DropReason.NEAR_DUPLICATE: ("near_dedup.threshold", "near_dedup.enabled"),
    DropReason.CONTAMINATED: (
        "decontamination.methods",
        "decontamination.cosine",
        "decontamination.templates",
        "questions.NAME.threshold",
    ),
    DropReason.FAULTY_PREMISES: ("questions.NAME.threshold",),
    DropReason.REJECTED: (),
    DropReason.SAMPLING_FAILED: ("stage1.sampling.max_failed", "stage1.sampling.retry_failed"),
    DropReason.TOO_FEW_ATTEMPTS: (*_band("min_judged"), *_band("attempts")),
    DropReason.SUSPECTED_WRONG_LABEL: ("labels.rule", "labels.drop_above", *_band("wrong_label_share")),
    DropReason.NEVER_SOLVED: _band("min_correct"),
    DropReason.TOO_EASY: _band("max_pass_rate"),
    DropReason.INTERACTIVE: (),
    DropReason.ASKS_FUNCTION: (),
    DropReason.NEEDS_FILES: (),
    DropReason.NO_SOLUTION: ("sources.N.code.solutions.N.path", "code.agreement.min_solutions"),
    DropReason.TOO_FEW_TESTS: ("code.agreement.min_tests", "code.agreement.min_votes", "code.test_generation.enabled"),
    DropReason.SEVERAL_OUTPUTS: ("code.agreement.max_split_share", "sources.N.code.checker"),
    DropReason.UNTRANSLATED: ("translation.model", "translation.reader"),
    DropReason.OVER_QUOTA: ("export.size",),
}
"""By reason, the settings that decide how often it is given; none if no setting does."""
