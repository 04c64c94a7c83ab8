"""Cleans rows, opens multiple choice, and applies format rules.

Invariants:
  - kept + dropped = in, in order;
  - dropped rows are unchanged; changed rows keep ``raw_statement`` and ``raw_answer``;
  - an answer is cleaned only if the verifier reads it as before;
  - rules never see code of figures;
  - ``choices`` of kept rows is null, unless the rule ``multiple_choice`` is off.
"""

from __future__ import annotations

from dataclasses import replace as with_changes

import polars as pl

from curation.config import StatementSettings
from curation.filters.multiple_choice import ParsedChoice, is_multiple_choice, open_question, parse_choices
from curation.filters.statements import figures
from curation.filters.statements.cleaning import cleaned
from curation.filters.statements.expressions import STATEMENT, StatementRule
from curation.filters.statements.rules import rules_for
from curation.records import DROPPED, PROBLEM, DropReason

VERSION = "statements@16"
STAGE = "statements"
MULTIPLE_CHOICE = "multiple_choice"
"""The rule that finds multiple choice."""
WORKED_ON = ("statement", "answer", "choices", "lang", "source", "meta")
_TEXTS = ("statement", "answer", "choices", "meta")
_MAX_EVIDENCE = 300
_VERDICT = pl.Schema({"_at": pl.UInt32, "rule": pl.String, "reason": pl.String, "evidence": pl.String})

_OPENED = pl.Schema({"_at": pl.UInt32(), **{name: PROBLEM[name] for name in ("statement", "answer", "choices")}})


def filter_statements(
    problems: pl.DataFrame, settings: StatementSettings | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Apply the rules to math rows, and split them."""
    return split_rows(problems, apply_rules(problems, settings))


def split_rows(problems: pl.DataFrame, judged: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split rows by the result of `apply_rules` into `PROBLEM` rows and `DROPPED` ones."""
    new = judged.select(pl.col(name).alias(f"_{name}") for name in _TEXTS)
    rows = problems.hstack(new).with_columns(
        judged["reason"],
        judged.select(pl.format("{}: {}", "rule", "evidence").alias("evidence")).to_series(),
        pl.lit(STAGE).alias("stage"),
    )
    is_kept = rows["reason"].is_null()
    kept = rows.filter(is_kept).with_columns(
        *(_raw(name) for name in ("statement", "answer")), *(pl.col(f"_{name}").alias(name) for name in _TEXTS)
    )
    dropped = rows.filter(~is_kept).select(DROPPED.names()).cast(DROPPED)
    return kept.select(PROBLEM.names()).cast(PROBLEM), dropped


def _raw(name: str) -> pl.Expr:
    """Return the earliest text, or null if unchanged."""
    changed = pl.col(name).ne_missing(pl.col(f"_{name}"))
    return pl.coalesce(pl.col(f"raw_{name}"), pl.when(changed).then(name)).alias(f"raw_{name}")


def apply_rules(problems: pl.DataFrame, settings: StatementSettings | None = None) -> pl.DataFrame:
    """Return cleaned columns, and the first rule, reason and evidence, or nulls."""
    settings = settings or StatementSettings()
    work, code = figures.take_out(problems.select(WORKED_ON).with_row_index("_at"))
    work = cleaned(work)
    verdicts = [pl.DataFrame(schema=_VERDICT)]
    if MULTIPLE_CHOICE not in settings.disabled:
        work, refused = _opened(work)
        verdicts.append(refused)
    alive = work.filter(pl.col("_at").is_in(verdicts[-1]["_at"].implode()).not_())
    for rule in rules_for(settings):
        fired = _fired(rule, alive)
        if fired.height:
            verdicts.append(fired)
            alive = alive.filter(pl.col("_at").is_in(fired["_at"].implode()).not_())
    texts = work.with_columns(figures.put_back(work["statement"], code), _marked(problems["meta"], code))
    judged = texts.select("_at", *_TEXTS).join(pl.concat(verdicts), on="_at", how="left", maintain_order="left")
    return judged.drop("_at").with_columns(pl.col("evidence").str.head(_MAX_EVIDENCE))


def _fired(rule: StatementRule, rows: pl.DataFrame) -> pl.DataFrame:
    gate = rule.gate
    if rule.needles:
        gate = STATEMENT.str.contains_any(list(rule.needles), ascii_case_insensitive=True) & gate
    passed = rows.lazy().filter(gate.fill_null(False)).collect()
    if passed.is_empty():  # compiling an expression is slow even without rows
        return pl.DataFrame(schema=_VERDICT)
    fired = passed.lazy().select("_at", rule=pl.lit(rule.name), reason=pl.lit(str(rule.reason)), evidence=rule.evidence)
    return fired.collect().filter(pl.col("evidence").is_not_null()).cast(_VERDICT)


def _opened(work: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Open multiple choice; return the rows, and verdicts on those that stay closed."""
    opened, refused = [], []
    for at, choice in parse_choices(work.filter(is_multiple_choice())):
        if not isinstance(choice, str) and (texts := open_question(choice)) is not None:
            opened.append((at, *texts, None))
        else:
            right = choice if isinstance(choice, str) else choice.options[choice.index]
            refused.append((at, MULTIPLE_CHOICE, str(DropReason.MULTIPLE_CHOICE), right))
    changes = pl.DataFrame(opened, schema=_OPENED, orient="row")
    work = work.update(changes, on="_at", include_nulls=True)
    return work, pl.DataFrame(refused, schema=_VERDICT, orient="row")


def find_choices(problems: pl.DataFrame) -> dict[int, ParsedChoice | str]:
    """Return dropped multiple choice by index, parsed, or why no option is right."""
    work, code = figures.take_out(problems.select(WORKED_ON).with_row_index("_at"))
    choices = dict(parse_choices(cleaned(work).filter(is_multiple_choice())))
    needed = {at: choice for at, choice in choices.items() if isinstance(choice, str) or open_question(choice) is None}
    return {at: _with_figures(choice, code[at]) if at in code else choice for at, choice in needed.items()}


def _with_figures(choice: ParsedChoice | str, codes: list[str]) -> ParsedChoice | str:
    if isinstance(choice, str):
        return choice
    texts = figures.put_back(pl.Series(["\n\x00".join((choice.question, *choice.options))]), {0: codes})
    question, *options = texts[0].split("\n\x00")
    return with_changes(choice, question=question, options=tuple(options))


def _marked(meta: pl.Series, code: dict[int, list[str]]) -> pl.Series:
    tables = meta.to_list() if code else []
    for at, codes in code.items():
        tables[at] = figures.marked(tables[at], codes)
    return pl.Series("meta", tables, pl.String) if code else meta


def classify(rows: pl.DataFrame, settings: StatementSettings | None = None) -> pl.DataFrame:
    """Return per row: id, keep, reason, evidence, statement, answer, rule.

    Args:
        rows: ``statement``; optionally ``answer``, ``choices``, ``lang``, ``source``, ``meta`` and ``id``.
    """
    missing = [pl.lit(None, dtype=PROBLEM[name]).alias(name) for name in WORKED_ON if name not in rows.columns]
    complete = rows.with_columns(missing).with_columns(pl.col(name).cast(PROBLEM[name]) for name in WORKED_ON)
    ids = rows["id"] if "id" in rows.columns else pl.int_range(rows.height, eager=True)
    judged = apply_rules(complete, settings)
    dropped = judged["reason"].is_not_null()
    return judged.select(
        ids.cast(pl.String).alias("id"),
        dropped.not_().alias("keep"),
        "reason",
        "evidence",
        *(pl.when(dropped).then(complete[name]).otherwise(name).alias(name) for name in ("statement", "answer")),
        "rule",
    )
