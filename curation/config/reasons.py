"""Which settings decide how many rows leave for a drop reason."""

from __future__ import annotations

from collections.abc import Mapping

from curation.records import DropReason

_RULES = ("statements.disabled",)
_BANDS = ("stage1.band.{}", "stage2.band.{}")


def _band(name: str) -> tuple[str, ...]:
    return tuple(key.format(name) for key in _BANDS)


SETTINGS_OF: Mapping[DropReason, tuple[str, ...]] = {
    DropReason.BAD_ROW: ("sources.N.bad_rows",),
    DropReason.MISSING_STATEMENT: ("sources.N.columns.statement",),
    DropReason.MISSING_ANSWER: ("sources.N.columns.answer",),
    **dict.fromkeys(
        (
            DropReason.MISSING_FIGURE,
            DropReason.PROOF,
            DropReason.MULTI_PART,
            DropReason.YES_NO,
            DropReason.DEBRIS,
            DropReason.TEXTUAL_ANSWER,
            DropReason.ANSWER_IN_STATEMENT,
        ),
        _RULES,
    ),
    DropReason.WRONG_LANGUAGE: ("statements.languages",),
    DropReason.OWN_RULE: ("statements.rules",),
    DropReason.UNUSABLE: ("questions.NAME.threshold",),
    DropReason.MULTIPLE_CHOICE: ("statements.disabled", "questions.NAME.model"),
    DropReason.UNVERIFIABLE_ANSWER: (),
    DropReason.UNPROVEN_REWRITING: (),
    DropReason.VERIFIER_FAILED: ("verify.limit_s",),
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
    DropReason.RESERVED: ("sources.N.reserve_per_level",),
    DropReason.SAMPLING_FAILED: ("stage1.sampling.max_failed",),
    DropReason.TOO_FEW_ATTEMPTS: (*_band("min_judged"), *_band("attempts")),
    DropReason.SUSPECTED_WRONG_LABEL: ("labels.rule", "labels.drop_above", *_band("wrong_label_share")),
    DropReason.NEVER_SOLVED: _band("min_correct"),
    DropReason.TOO_EASY: _band("max_pass_rate"),
    DropReason.INTERACTIVE: (),
    DropReason.ASKS_FUNCTION: (),
    DropReason.NEEDS_FILES: (),
    DropReason.NO_SOLUTION: ("sources.N.code.solutions.N.path", "sources.N.code.solutions.N.limit"),
    DropReason.TOO_FEW_TESTS: ("code.min_tests", "code.make_tests"),
    DropReason.SEVERAL_OUTPUTS: ("sources.N.code.checker",),
    DropReason.UNTRANSLATED: ("translation.model", "translation.reader"),
    DropReason.NO_VARIANT: ("questions.NAME.model", "questions.NAME.max_votes"),
    DropReason.OVER_QUOTA: ("export.size",),
}
"""By reason, the settings that decide how often it is given; none if no setting does."""
