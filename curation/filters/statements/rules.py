"""The format rules: one named rule each, side by side, in order of precedence.

A rule is a cheap test (``gate``: literals, lengths) and an expression that gives the evidence, the text that
decided, or null where the rule does not fire. Both read the columns ``statement``, ``answer``, ``lang`` and
``meta``; the evidence is only worked out where the gate lets a row through.

Invariants:
  - one rule, one `DropReason`; a row leaves by the first rule that fires;
  - a null statement or answer fires nothing but the rules about missing ones (and those about proofs);
  - rules read a row alone: no rule depends on another row.

What needs understanding (missing premises, contradictions) is not here, nor whether an answer can be verified.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from curation.config import StatementSettings
from curation.filters.statements import (
    broken_off,
    completeness,
    external_references,
    figure_rules,
    language_tags,
    question_type,
    words,
)
from curation.filters.statements.expressions import (
    ANSWER,
    ANY_ROW,
    STATEMENT,
    StatementRule,
    contains_any,
    either_text,
    matched_text,
    tail,
    tokens,
)
from curation.languages.vocabulary import languages
from curation.records import DropReason

MIN_LETTERS = 8
"""Letters, digits and signs that a statement needs."""

_NO_ANSWER = ANSWER.is_null() | (ANSWER.str.strip_chars() == "") | ANSWER.str.contains(question_type.NO_ANSWER)
# An answer short enough to be compared, to a question that asks for it beside the proof.
_ALSO_FINDS = _NO_ANSWER.not_() & (ANSWER.str.len_chars() <= 80) & STATEMENT.str.contains(words.ASKS_A_VALUE)
_PROSE = ANSWER.str.replace_all(question_type.FORMULA, " ¦ ")
_BEGINS = STATEMENT.str.count_matches("\\begin{", literal=True)
_ENDS = STATEMENT.str.count_matches("\\end{", literal=True)
_LATIN_TAGS = [lang.code for lang in languages() if lang.script == "latin"]
_HAN_TAGS = [lang.code for lang in languages() if not lang.spaced]
_CYRILLIC_TAGS = [lang.code for lang in languages() if lang.script == "cyrillic"]
_END = tail(STATEMENT, 60)
_TAGGED_END = pl.concat_str(pl.col("lang").fill_null("en"), pl.lit(" "), _END)
_DOLLARS = STATEMENT.str.count_matches("$", literal=True) - STATEMENT.str.count_matches("\\$", literal=True)
_TOKENS, _SHOWN, _GIVEN, _WORKED_OUT = (
    tokens(ANSWER),
    tokens(STATEMENT.str.extract(external_references.SHOWN)),
    tokens(STATEMENT.str.extract(external_references.GIVEN)),
    tokens(STATEMENT.str.extract(external_references.WORKED_OUT)),
)  # fmt: skip
_CLAIM = STATEMENT.str.extract(external_references.SHOWN).str.replace(f"(?:{words.ASKS_A_VALUE})(?s:.)*$", "")
_IS_LONE = ANSWER.str.contains(external_references.LONE).fill_null(False)
_OPENED, _CLOSED = (
    ANSWER.str.count_matches(brace, literal=True) - ANSWER.str.count_matches(f"\\{brace}", literal=True)
    for brace in "{}"
)
_UNBALANCED = (_OPENED != _CLOSED) | (
    ANSWER.str.count_matches(r"\\left(?:[^a-z]|$)") != ANSWER.str.count_matches(r"\\right(?:[^a-z]|$)")
)
_SIGNS = STATEMENT.str.replace_all(completeness.BLANKS, "")
_MEANT = _SIGNS.str.replace_all(completeness.SIGNS, "").str.len_chars()
_ASKS_NOTHING = (
    STATEMENT.str.replace_all(completeness.FIGURES, " ").str.contains(completeness.TASK)
    | STATEMENT.str.contains(completeness.TASK_WITH_OPTIONS)
    | (STATEMENT.str.contains(completeness.BARE_FORMULA) & STATEMENT.str.contains(completeness.OPERATOR))
).not_()
# "sin x = 1/2, cos x = …": two values by name
_EQUATIONS = ANSWER.str.contains(r"=[^=]*[,;][^=]*=") & ANSWER.str.contains("\\begin", literal=True).not_()
_BARE_WORDS = ANSWER.str.replace_all(question_type.TEXT_MARKS, " ")


def _missing_statement() -> StatementRule:
    """Return the rule for statements that are null, blank, or shorter than any question can be; a hanzi counts as two
    letters.
    """
    letters = STATEMENT.str.replace_all(r"\s+", "").str.len_chars() + STATEMENT.str.count_matches(r"\p{Han}")
    return StatementRule(
        "missing_statement",
        DropReason.MISSING_STATEMENT,
        STATEMENT.is_null() | (STATEMENT.str.len_chars() < 4 * MIN_LETTERS),
        either_text(
            STATEMENT.is_null() | ((letters < MIN_LETTERS) & STATEMENT.str.contains(completeness.SHORT_SUM).not_()),
            STATEMENT.fill_null("null"),
        ),
    )


def _language_not_wanted(languages: Sequence[str]) -> StatementRule:
    """Return the rule for rows in a language that the recipe does not take; it never fires while no language is
    named.
    """
    unwanted = pl.lit(bool(languages)) & pl.col("lang").is_in(list(languages)).not_()
    return StatementRule(
        "language_not_wanted", DropReason.WRONG_LANGUAGE, unwanted, pl.concat_str(pl.lit("lang="), "lang")
    )


_FIXED: tuple[StatementRule, ...] = (
    StatementRule(
        "broken_characters",
        DropReason.DEBRIS,
        ANY_ROW,
        matched_text(STATEMENT, completeness.DEBRIS),
        needles=completeness.DEBRIS_NEEDLES,
    ),
    StatementRule(
        "lost_characters",
        DropReason.DEBRIS,
        STATEMENT.str.contains("\ufffd", literal=True),
        matched_text(STATEMENT, completeness.LOST),
    ),
    StatementRule(
        "only_signs",
        DropReason.DEBRIS,
        contains_any(STATEMENT, completeness.TASK_NEEDLES).not_() | (STATEMENT.str.len_chars() < 40),
        either_text(
            (_SIGNS.str.len_chars() >= completeness.LEAST_SIGNS)
            & (completeness.LEAST_MEANT * _SIGNS.str.len_chars() > _MEANT),
            STATEMENT,
        ),
    ),
    StatementRule(
        "proof",
        DropReason.PROOF,
        ANY_ROW,
        either_text(_ALSO_FINDS.not_(), matched_text(STATEMENT, words.PROOF, words.PROOF_HARMLESS)),
        needles=words.PROOF_NEEDLES,
    ),
    StatementRule(
        "marking_scheme",
        DropReason.PROOF,
        _NO_ANSWER & pl.col("meta").is_not_null() & (pl.col("meta").str.len_bytes() > 2),
        matched_text(pl.col("meta"), words.MARKING),
    ),
    StatementRule(
        "open_ended",
        DropReason.PROOF,
        _NO_ANSWER & STATEMENT.is_not_null(),
        matched_text(STATEMENT, words.OPEN_ENDED),
    ),
    StatementRule(
        "formal_task",
        DropReason.PROOF,
        _NO_ANSWER & STATEMENT.str.contains(words.FORMULA),
        matched_text(STATEMENT, words.FORMAL_TASK),
    ),
    StatementRule("missing_answer", DropReason.MISSING_ANSWER, _NO_ANSWER, ANSWER.fill_null("null")),
    StatementRule(
        "broken_answer",
        DropReason.UNVERIFIABLE_ANSWER,
        ANSWER.str.contains(question_type.MAY_BE_BROKEN),
        either_text(ANSWER.str.contains(question_type.BROKEN) | _UNBALANCED, ANSWER),
    ),
    StatementRule(
        "not_a_problem",
        DropReason.NOT_A_PROBLEM,
        ANY_ROW,
        pl.coalesce(
            matched_text(STATEMENT, completeness.NOT_A_PROBLEM),
            either_text(
                contains_any(STATEMENT, completeness.TASK_NEEDLES).not_(), matched_text(STATEMENT, completeness.ADDRESS)
            ),
        ),
        needles=completeness.NOT_A_PROBLEM_NEEDLES,
    ),
    figure_rules.UNDRAWN_GRAPH,
    figure_rules.MISSING_FIGURE,
    StatementRule(
        "program_text",
        DropReason.DEBRIS,
        contains_any(STATEMENT, completeness.TASK_NEEDLES).not_(),
        matched_text(STATEMENT, completeness.CODE),
        needles=completeness.CODE_NEEDLES,
    ),
    figure_rules.MISSING_TABLE,
    StatementRule(
        "letter_answer",
        DropReason.CHOICES_UNRESOLVED,
        ANSWER.str.contains(question_type.ONLY_LETTER),
        matched_text(STATEMENT, question_type.LETTERED),
    ),
    StatementRule(
        "multi_part",
        DropReason.MULTI_PART,
        ANY_ROW,
        matched_text(STATEMENT, question_type.MULTI_PART),
        needles=question_type.MULTI_PART_NEEDLES,
    ),
    StatementRule(
        "also_asked",
        DropReason.MULTI_PART,
        contains_any(STATEMENT, question_type.ALSO_ASKED_NEEDLES) | (STATEMENT.str.count_matches(r"[?？]") > 1),
        matched_text(STATEMENT, question_type.ALSO_ASKED, question_type.ALSO_ASKED_HARMLESS),
    ),
    StatementRule(
        "refers_elsewhere",
        DropReason.REFERS_ELSEWHERE,
        ANY_ROW,
        matched_text(STATEMENT, external_references.ELSEWHERE, external_references.ELSEWHERE_HARMLESS),
        needles=external_references.ELSEWHERE_NEEDLES,
    ),
    StatementRule(
        "marked_answers",
        DropReason.MULTI_PART,
        ANSWER.str.contains(r"[)）①.、:．]"),
        matched_text(ANSWER, question_type.MARKED_ANSWERS),
    ),
    StatementRule(
        "several_answers",
        DropReason.MULTI_PART,
        ANSWER.str.contains(",", literal=True) | ANSWER.str.contains(question_type.SEVERAL),
        either_text(
            (ANSWER.str.contains(r"[^\\][;；]") & STATEMENT.str.contains(question_type.TWO_BLANKS))
            | (ANSWER.str.contains(r"^[\s$]*[(\[{\\]").not_() | _EQUATIONS)
            & ANSWER.str.contains(r"^\d{1,3}(?:,\d{3})+(?:\.\d+)?\D*$").not_()
            & STATEMENT.str.contains(question_type.ASKS_A_LIST).not_()
            & (ANSWER.str.contains(question_type.SEVERAL) | ANSWER.str.contains(r"^\s*-?[\d.]+,-?[\d.]+\s*$")),
            matched_text(STATEMENT, question_type.ASKS_SEVERAL),
        ),
    ),
    StatementRule(
        "yes_no_answer",
        DropReason.YES_NO,
        ANSWER.is_not_null(),
        matched_text(ANSWER, question_type.YES_NO_ANSWER),
    ),
    StatementRule(
        "true_or_false",
        DropReason.YES_NO,
        ANY_ROW,
        matched_text(STATEMENT, question_type.TRUE_FALSE),
        needles=question_type.TRUE_FALSE_NEEDLES,
    ),
    StatementRule(
        "hedged_answer",
        DropReason.HEDGED_ANSWER,
        ANSWER.str.contains(question_type.HEDGED),
        either_text(
            STATEMENT.str.contains(question_type.ASKS_ROUNDED).not_(), matched_text(ANSWER, question_type.HEDGED)
        ),
    ),
    StatementRule(
        "rounded_answer",
        DropReason.HEDGED_ANSWER,
        ANSWER.str.contains(question_type.ROUNDED),
        either_text(
            STATEMENT.str.contains(question_type.ASKS_ROUNDED).not_(), matched_text(ANSWER, question_type.ROUNDED)
        ),
    ),
    StatementRule(
        "either_number",
        DropReason.HEDGED_ANSWER,
        ANSWER.str.contains(question_type.EITHER_NUMBER),
        either_text(STATEMENT.str.contains(question_type.ASKS_A_NUMBER), ANSWER),
    ),
    StatementRule(
        "proof_answer",
        DropReason.TEXTUAL_ANSWER,
        ANSWER.is_not_null(),
        matched_text(ANSWER, question_type.PROOF_ANSWER),
    ),
    StatementRule(
        "worked_solution",
        DropReason.TEXTUAL_ANSWER,
        ANSWER.is_not_null(),
        either_text(
            ((ANSWER.str.len_chars() > question_type.LONGEST_ANSWER) & ANSWER.str.contains(question_type.PROSE))
            | ANSWER.str.contains(question_type.WORKED),
            ANSWER.str.head(60),
        ),
    ),
    StatementRule(
        "textual_answer",
        DropReason.TEXTUAL_ANSWER,
        ANSWER.str.contains(r"\p{Latin}{2}|\p{Han}{2}|\p{Cyrillic}{2}"),
        pl.coalesce(
            matched_text(_PROSE, question_type.SENTENCE),
            either_text(ANSWER.str.contains(r"[\d$\\=]").not_(), matched_text(_PROSE, question_type.PHRASE)),
            either_text(ANSWER.str.contains(r"[\d$\\=]").not_(), matched_text(_PROSE, question_type.HAN_SENTENCE)),
            either_text(
                _BARE_WORDS.str.contains(question_type.NOT_WORDS).not_()
                & _BARE_WORDS.str.contains(question_type.LONE_LETTER).not_(),
                matched_text(_BARE_WORDS, question_type.WORDY, question_type.MATH_WORDS),
            ),
        ),
    ),
    StatementRule(
        "series_guess",
        DropReason.GUESSWORK,
        ANY_ROW,
        matched_text(STATEMENT, completeness.SERIES_GUESS, completeness.SERIES_HARMLESS),
        needles=completeness.SERIES_NEEDLES,
    ),
    StatementRule(
        "answer_in_statement",
        DropReason.ANSWER_IN_STATEMENT,
        ANY_ROW,
        either_text(
            (_TOKENS.str.len_chars() > 2)
            & (_GIVEN.str.starts_with(_TOKENS) | _WORKED_OUT.str.contains(_TOKENS, literal=True)).fill_null(False)
            | external_references.is_shown(STATEMENT.str.extract(external_references.GIVEN), ANSWER),
            tail(STATEMENT, 80),
        ),
        needles=external_references.GIVEN_NEEDLES,
    ),
    StatementRule(
        "answer_to_show",
        DropReason.ANSWER_IN_STATEMENT,
        ANY_ROW,
        either_text(
            (_IS_LONE.not_() & (_TOKENS.str.len_chars() > 2) & _SHOWN.str.contains(_TOKENS, literal=True))
            | (_IS_LONE & external_references.stands_alone(_CLAIM, ANSWER))
            | external_references.is_shown(STATEMENT.str.extract(external_references.SHOWN), ANSWER),
            tail(STATEMENT, 80),
        ),
        needles=external_references.SHOWN_NEEDLES,
    ),
    figure_rules.UNDEFINED_NAME,
    StatementRule(
        "cut_off",
        DropReason.TRUNCATED,
        STATEMENT.is_not_null(),
        either_text(
            _TAGGED_END.str.contains(completeness.CUT_OFF) & _END.str.contains(completeness.CUT_OFF_HARMLESS).not_(),
            _END,
        ),
    ),
    StatementRule(
        "open_formula",
        DropReason.TRUNCATED,
        STATEMENT.str.contains_any(["{", "$", "\\("]),
        either_text(
            STATEMENT.str.contains(r"[.。．!！?？]\s*$").not_()
            & (
                STATEMENT.str.contains(completeness.OPEN_FORMULA)
                | ((_DOLLARS % 2 == 1) & STATEMENT.str.contains(completeness.OPEN_DOLLAR))
            ),
            _END,
        ),
    ),
    StatementRule(
        "open_environment",
        DropReason.TRUNCATED,
        contains_any(STATEMENT, ["\\begin{"]),
        either_text(_BEGINS > _ENDS, pl.concat_str(_BEGINS, pl.lit(" \\begin, "), _ENDS, pl.lit(" \\end"))),
    ),
    StatementRule(
        "no_task",
        DropReason.NOT_A_PROBLEM,
        contains_any(STATEMENT, completeness.TASK_NEEDLES).not_() & pl.col("lang").is_in(language_tags.TAGS),
        either_text(_ASKS_NOTHING, tail(STATEMENT, 80)),
    ),
    *broken_off.RULES,
    StatementRule(
        "wrong_script",
        DropReason.WRONG_LANGUAGE,
        pl.col("lang").is_in([*_HAN_TAGS, *_CYRILLIC_TAGS])
        | (pl.col("lang").is_in(_LATIN_TAGS) & (STATEMENT.str.len_bytes() > STATEMENT.str.len_chars())),
        pl.coalesce(
            either_text(
                pl.col("lang").is_in([*_HAN_TAGS, *_CYRILLIC_TAGS])
                & STATEMENT.str.contains(r"\p{Han}|\p{Cyrillic}").not_(),
                matched_text(STATEMENT, completeness.LATIN_PROSE),
            ),
            either_text(pl.col("lang").is_in(_HAN_TAGS).not_(), matched_text(STATEMENT, r"\p{Han}{8,}")),
            either_text(
                pl.col("lang").is_in(_CYRILLIC_TAGS).not_(),
                matched_text(STATEMENT, r"(?:\p{Cyrillic}{2,}\s+){4,}\p{Cyrillic}{2,}"),
            ),
        ),
    ),
    StatementRule(
        "another_language",
        DropReason.WRONG_LANGUAGE,
        pl.col("lang").is_in(language_tags.TAGS),
        language_tags.another_language(),
    ),
)  # fmt: skip


def rules_for(settings: StatementSettings) -> tuple[StatementRule, ...]:
    """Return the rules in order of precedence, less those switched off."""
    table = (_missing_statement(), _language_not_wanted(settings.languages), *_FIXED)
    return tuple(rule for rule in table if rule.name not in settings.disabled)


RULES = rules_for(StatementSettings())
"""Every rule with the default settings, in order of precedence."""
