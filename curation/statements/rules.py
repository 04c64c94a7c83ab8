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
from dataclasses import dataclass

import polars as pl

from curation.config import StatementSettings
from curation.languages.vocabulary import languages
from curation.records import DropReason
from curation.statements import asking, outside, tags, wholeness, words
from curation.statements.expressions import either_text, found, has, tail, tokens

STATEMENT = pl.col("statement")
ANSWER = pl.col("answer")


@dataclass(frozen=True, slots=True)
class Rule:
    """A format rule: ``evidence`` is evaluated where ``gate`` holds, and is null where the rule does not fire."""

    name: str
    reason: DropReason
    gate: pl.Expr
    evidence: pl.Expr


_NO_ANSWER = ANSWER.is_null() | (ANSWER.str.strip_chars() == "") | ANSWER.str.contains(asking.NO_ANSWER)
# An answer short enough to be compared, to a question that asks for it beside the proof.
_ALSO_FINDS = _NO_ANSWER.not_() & (ANSWER.str.len_chars() <= 80) & STATEMENT.str.contains(words.ASKS_A_VALUE)
_PROSE = ANSWER.str.replace_all(asking.FORMULA, " ¦ ")
_BEGINS = STATEMENT.str.count_matches("\\begin{", literal=True)
_ENDS = STATEMENT.str.count_matches("\\end{", literal=True)
_LATIN_TAGS = [known.code for known in languages() if known.script == "latin"]
_HAN_TAGS = [known.code for known in languages() if not known.spaced]
_CYRILLIC_TAGS = [known.code for known in languages() if known.script == "cyrillic"]
_END = tail(STATEMENT, 60)
_TAGGED_END = pl.concat_str(pl.col("lang").fill_null("en"), pl.lit(" "), _END)
_DOLLARS = STATEMENT.str.count_matches("$", literal=True) - STATEMENT.str.count_matches("\\$", literal=True)
_TOKENS, _GIVEN, _WORKED_OUT = (
    tokens(ANSWER), tokens(STATEMENT.str.extract(outside.GIVEN)), tokens(STATEMENT.str.extract(outside.WORKED_OUT))
)  # fmt: skip
_SIGNS = STATEMENT.str.replace_all(wholeness.BLANKS, "")
_MEANT = _SIGNS.str.replace_all(wholeness.SIGNS, "").str.len_chars()
_BARE_WORDS = ANSWER.str.replace_all(asking.TEXT_MARKS, " ")


def _missing_statement(min_letters: int) -> Rule:
    """A statement that is null, blank, or shorter than any question can be; a hanzi says as much as two letters."""
    letters = STATEMENT.str.replace_all(r"\s+", "").str.len_chars() + STATEMENT.str.count_matches(r"\p{Han}")
    return Rule(
        "missing_statement",
        DropReason.MISSING_STATEMENT,
        STATEMENT.is_null() | (STATEMENT.str.len_chars() < 4 * min_letters),
        either_text(STATEMENT.is_null() | (letters < min_letters), STATEMENT.fill_null("null")),
    )


def _language_not_wanted(languages: Sequence[str]) -> Rule:
    """A row in a language that the recipe does not take; fires nothing while no language is named."""
    unwanted = pl.lit(bool(languages)) & pl.col("lang").is_in(list(languages)).not_()
    return Rule("language_not_wanted", DropReason.WRONG_LANGUAGE, unwanted, pl.concat_str(pl.lit("lang="), "lang"))


_FIXED: tuple[Rule, ...] = (
    Rule(
        "broken_characters",
        DropReason.DEBRIS,
        has(STATEMENT, wholeness.DEBRIS_NEEDLES),
        found(STATEMENT, wholeness.DEBRIS),
    ),
    Rule(
        "only_signs",
        DropReason.DEBRIS,
        has(STATEMENT, wholeness.TASK_NEEDLES).not_() | (STATEMENT.str.len_chars() < 40),
        either_text(
            (_SIGNS.str.len_chars() >= wholeness.LEAST_SIGNS)
            & (wholeness.LEAST_MEANT * _SIGNS.str.len_chars() > _MEANT),
            STATEMENT,
        ),
    ),
    Rule(
        "proof",
        DropReason.PROOF,
        has(STATEMENT, words.PROOF_NEEDLES),
        either_text(_ALSO_FINDS.not_(), found(STATEMENT, words.PROOF, words.PROOF_HARMLESS)),
    ),
    Rule(
        "marking_scheme",
        DropReason.PROOF,
        _NO_ANSWER & pl.col("meta").is_not_null() & (pl.col("meta").str.len_bytes() > 2),
        found(pl.col("meta"), words.MARKING),
    ),
    Rule("open_ended", DropReason.PROOF, _NO_ANSWER & STATEMENT.is_not_null(), found(STATEMENT, words.OPEN_ENDED)),
    Rule(
        "formal_task",
        DropReason.PROOF,
        _NO_ANSWER & STATEMENT.str.contains(words.FORMULA),
        found(STATEMENT, words.FORMAL_TASK),
    ),
    Rule("missing_answer", DropReason.MISSING_ANSWER, _NO_ANSWER, ANSWER.fill_null("null")),
    Rule(
        "not_a_problem",
        DropReason.NOT_A_PROBLEM,
        has(STATEMENT, wholeness.NOT_A_PROBLEM_NEEDLES),
        found(STATEMENT, wholeness.NOT_A_PROBLEM),
    ),
    Rule(
        "missing_figure",
        DropReason.MISSING_FIGURE,
        has(STATEMENT, outside.FIGURE_NEEDLES),
        found(STATEMENT, outside.FIGURE, outside.FIGURE_HARMLESS),
    ),
    Rule(
        "program_text",
        DropReason.DEBRIS,
        has(STATEMENT, wholeness.CODE_NEEDLES) & has(STATEMENT, wholeness.TASK_NEEDLES).not_(),
        found(STATEMENT, wholeness.CODE),
    ),
    Rule(
        "missing_table",
        DropReason.MISSING_FIGURE,
        has(STATEMENT, outside.TABLE_NEEDLES),
        either_text(STATEMENT.str.contains(outside.TABLE_HERE).not_(), found(STATEMENT, outside.TABLE)),
    ),
    Rule(
        "letter_answer",
        DropReason.CHOICES_UNRESOLVED,
        ANSWER.str.contains(asking.ONLY_LETTER),
        found(STATEMENT, asking.LETTERED),
    ),
    Rule(
        "multi_part",
        DropReason.MULTI_PART,
        has(STATEMENT, asking.MULTI_PART_NEEDLES),
        found(STATEMENT, asking.MULTI_PART),
    ),
    Rule(
        "also_asked",
        DropReason.MULTI_PART,
        has(STATEMENT, asking.ALSO_ASKED_NEEDLES) | (STATEMENT.str.count_matches(r"[?？]") > 1),
        found(STATEMENT, asking.ALSO_ASKED),
    ),
    Rule(
        "refers_elsewhere",
        DropReason.REFERS_ELSEWHERE,
        has(STATEMENT, outside.ELSEWHERE_NEEDLES),
        found(STATEMENT, outside.ELSEWHERE),
    ),
    Rule(
        "marked_answers",
        DropReason.MULTI_PART,
        ANSWER.str.contains(r"[)）①.、:．]"),
        found(ANSWER, asking.MARKED_ANSWERS),
    ),
    Rule(
        "several_answers",
        DropReason.MULTI_PART,
        ANSWER.str.contains(",", literal=True) | ANSWER.str.contains(asking.SEVERAL),
        either_text(
            ANSWER.str.contains(r"^[\s$]*[(\[{\\]").not_()
            & ANSWER.str.contains(r"^\d{1,3}(?:,\d{3})+(?:\.\d+)?\D*$").not_()
            & (ANSWER.str.contains(asking.SEVERAL) | ANSWER.str.contains(r"^\s*-?[\d.]+,-?[\d.]+\s*$")),
            found(STATEMENT, asking.ASKS_SEVERAL),
        ),
    ),
    Rule("yes_no_answer", DropReason.YES_NO, ANSWER.is_not_null(), found(ANSWER, asking.YES_NO_ANSWER)),
    Rule(
        "true_or_false",
        DropReason.YES_NO,
        has(STATEMENT, asking.TRUE_FALSE_NEEDLES),
        found(STATEMENT, asking.TRUE_FALSE),
    ),
    Rule("hedged_answer", DropReason.HEDGED_ANSWER, ANSWER.is_not_null(), found(ANSWER, asking.HEDGED)),
    Rule(
        "either_number",
        DropReason.HEDGED_ANSWER,
        ANSWER.str.contains(asking.EITHER_NUMBER),
        either_text(STATEMENT.str.contains(asking.ASKS_A_NUMBER), ANSWER),
    ),
    Rule(
        "worked_solution",
        DropReason.TEXTUAL_ANSWER,
        ANSWER.is_not_null(),
        either_text(
            ((ANSWER.str.len_chars() > asking.LONGEST_ANSWER) & ANSWER.str.contains(asking.PROSE))
            | ANSWER.str.contains(asking.WORKED),
            ANSWER.str.head(60),
        ),
    ),
    Rule(
        "textual_answer",
        DropReason.TEXTUAL_ANSWER,
        ANSWER.str.contains(r"\p{Latin}{2}|\p{Han}{2}|\p{Cyrillic}{2}"),
        pl.coalesce(
            found(_PROSE, asking.SENTENCE),
            either_text(ANSWER.str.contains(r"[\d$\\=]").not_(), found(_PROSE, asking.PHRASE)),
            either_text(ANSWER.str.contains(r"[\d$\\=]").not_(), found(_PROSE, asking.HAN_SENTENCE)),
            either_text(
                _BARE_WORDS.str.contains(asking.NOT_WORDS).not_() & _BARE_WORDS.str.contains(asking.LONE_LETTER).not_(),
                found(_BARE_WORDS, asking.WORDY, asking.MATH_WORDS),
            ),
        ),
    ),
    Rule(
        "series_guess",
        DropReason.GUESSWORK,
        has(STATEMENT, wholeness.SERIES_NEEDLES),
        found(STATEMENT, wholeness.SERIES_GUESS, wholeness.SERIES_HARMLESS),
    ),
    Rule(
        "answer_in_statement",
        DropReason.ANSWER_IN_STATEMENT,
        has(STATEMENT, outside.GIVEN_NEEDLES),
        either_text(
            (_TOKENS.str.len_chars() > 2)
            & (_GIVEN.str.starts_with(_TOKENS) | _WORKED_OUT.str.contains(_TOKENS, literal=True)).fill_null(False),
            tail(STATEMENT, 80),
        ),
    ),
    Rule(
        "cut_off",
        DropReason.TRUNCATED,
        STATEMENT.is_not_null(),
        either_text(
            _TAGGED_END.str.contains(wholeness.CUT_OFF) & _END.str.contains(wholeness.CUT_OFF_HARMLESS).not_(), _END
        ),
    ),
    Rule(
        "open_formula",
        DropReason.TRUNCATED,
        STATEMENT.str.contains_any(["{", "$", "\\("]),
        either_text(
            STATEMENT.str.contains(wholeness.OPEN_FORMULA)
            | ((_DOLLARS % 2 == 1) & STATEMENT.str.contains(wholeness.OPEN_DOLLAR)),
            _END,
        ),
    ),
    Rule(
        "open_environment",
        DropReason.TRUNCATED,
        has(STATEMENT, ["\\begin{"]),
        either_text(_BEGINS > _ENDS, pl.concat_str(_BEGINS, pl.lit(" \\begin, "), _ENDS, pl.lit(" \\end"))),
    ),
    Rule(
        "no_task",
        DropReason.NOT_A_PROBLEM,
        has(STATEMENT, wholeness.TASK_NEEDLES).not_() & pl.col("lang").is_in(tags.TAGS),
        either_text(STATEMENT.str.contains(wholeness.TASK).not_(), tail(STATEMENT, 80)),
    ),
    Rule(
        "wrong_script",
        DropReason.WRONG_LANGUAGE,
        pl.col("lang").is_in([*_HAN_TAGS, *_CYRILLIC_TAGS])
        | (pl.col("lang").is_in(_LATIN_TAGS) & (STATEMENT.str.len_bytes() > STATEMENT.str.len_chars())),
        pl.coalesce(
            either_text(
                pl.col("lang").is_in([*_HAN_TAGS, *_CYRILLIC_TAGS])
                & STATEMENT.str.contains(r"\p{Han}|\p{Cyrillic}").not_(),
                found(STATEMENT, wholeness.LATIN_PROSE),
            ),
            either_text(pl.col("lang").is_in(_HAN_TAGS).not_(), found(STATEMENT, r"\p{Han}{8,}")),
            either_text(
                pl.col("lang").is_in(_CYRILLIC_TAGS).not_(),
                found(STATEMENT, r"(?:\p{Cyrillic}{2,}\s+){4,}\p{Cyrillic}{2,}"),
            ),
        ),
    ),
    Rule("another_language", DropReason.WRONG_LANGUAGE, pl.col("lang").is_in(tags.TAGS), tags.another_language()),
)  # fmt: skip


def rules_for(settings: StatementSettings) -> tuple[Rule, ...]:
    """The rules in order of precedence, less those switched off."""
    table = (_missing_statement(settings.min_letters), _language_not_wanted(settings.languages), *_FIXED)
    return tuple(rule for rule in table if rule.name not in settings.disabled)


RULES = rules_for(StatementSettings())
"""Every rule with the default settings, in order of precedence."""
