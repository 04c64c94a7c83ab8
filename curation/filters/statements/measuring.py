"""Everything that the format filter finds in rows, before any threshold: verdicts of rules with their scores, and what
the classifier says.

    measure(problems, settings) -> Measured(rewritten, verdicts, scores)

Each rule looks at every row, so that a row is not lost to the others where the first of its rules is not trusted. A
verdict's score is how likely it is right, by the labelled rows (`precision.rule_score`).

Invariants: the result depends on nothing but the rows and the settings without their thresholds; a row's verdicts stand
in the order of the rules; a figure's code is seen by no rule and changed by nothing.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import polars as pl

from curation.config import StatementSettings
from curation.filters.multiple_choice import is_multiple_choice
from curation.filters.statements import broken_off, figures, scoring
from curation.filters.statements.expressions import StatementRule
from curation.filters.statements.gates import gates
from curation.filters.statements.precision import CERTAIN, rule_score
from curation.filters.statements.rewriting import CHOICES_RULE, VERDICT, cleaned, opened
from curation.filters.statements.rules import rules_for
from curation.records import PROBLEM, DropReason

# Rules that say a question is not complete: where the options were its other half, they are what it lacks.
_NEEDS_OPTIONS = ("missing_statement", "no_task", "cut_off", "series_guess", "several_answers", "textual_answer")
WORKED_ON = ("statement", "answer", "choices", "lang", "source", "meta")
_MAX_EVIDENCE = 300
_MANY = 20_000
"""Rows from which those that may be multiple choice, worked on in Python, are judged beside the others, in polars."""

VERDICTS = pl.Schema(
    {
        "at": pl.UInt32(),  # the row's place in its shard
        "id": pl.String(),
        **{name: pl.String() for name in VERDICT.names()[1:]},
        "score": pl.Float64(),  # how likely such a verdict is right
    }
)
"""One row per rule and row that it would drop."""
SCORES = pl.Schema(
    {
        "id": pl.String(),
        "row": pl.Int64(),
        "score": pl.Float64(),  # probability that the row cannot be used as it stands
        "rule": pl.String(),  # the first rule that found something and is not trusted alone; null where none did
        "reason": pl.String(),
        "evidence": pl.String(),
    }
)
"""One row per row, in order."""
REWRITTEN = pl.Schema(
    {"at": pl.UInt32(), **{name: PROBLEM[name] for name in ("statement", "answer", "choices", "meta")}}
)
"""One row per row that the filter changed, as it stands afterwards."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was found in rows: `REWRITTEN`, `VERDICTS` and `SCORES`."""

    rewritten: pl.DataFrame
    verdicts: pl.DataFrame
    scores: pl.DataFrame

    def part(self, start: int, height: int) -> Measured:
        """Return what was found in some of the rows, with their places among themselves."""
        inside = pl.col("at").is_between(start, start + height - 1)
        rewritten, verdicts = (
            table.filter(inside).with_columns(pl.col("at") - start) for table in (self.rewritten, self.verdicts)
        )
        return Measured(rewritten.cast(REWRITTEN), verdicts.cast(VERDICTS), self.scores.slice(start, height))


@dataclass(frozen=True, slots=True)
class _Found:
    """The same of rows with their ``_at``, before figures are put back."""

    work: pl.DataFrame
    verdicts: pl.DataFrame
    suspicions: pl.DataFrame
    opened: pl.DataFrame


def measure(problems: pl.DataFrame, settings: StatementSettings) -> Measured:
    """Return what the rules and the classifier find in rows of the `PROBLEM` schema."""
    work, code = figures.take_out(problems.select(WORKED_ON).with_row_index("_at"))
    work = cleaned(work)
    if work.height < _MANY or CHOICES_RULE in settings.disabled:
        found = _found(work, settings)
    else:
        is_choice = is_multiple_choice()
        with ThreadPoolExecutor(max_workers=1) as beside:
            others = beside.submit(_found, work.filter(~is_choice), settings)
            found = _together(_found(work.filter(is_choice), settings), others.result())
    verdicts = pl.concat([found.verdicts, _lost_figures(found.work, code)]).sort("_at", maintain_order=True)
    verdicts = verdicts.with_columns(
        problems["id"].gather(verdicts["_at"]),
        pl.Series("score", [rule_score(rule) for rule in verdicts["rule"]], pl.Float64),
        pl.col("evidence").str.head(_MAX_EVIDENCE),
    )
    rows = found.work.with_columns(figures.put_back(found.work["statement"], code), _marked(problems["meta"], code))
    return Measured(
        _rewritten(problems, rows),
        verdicts.rename({"_at": "at"}).match_to_schema(VERDICTS),
        problems.select("id", "row")
        .hstack(found.suspicions.select("score", "rule", "reason", pl.col("evidence").str.head(_MAX_EVIDENCE)))
        .match_to_schema(SCORES),
    )


def _together(one: _Found, other: _Found) -> _Found:
    work, suspicions = (
        pl.concat([getattr(one, name), getattr(other, name)]).sort("_at") for name in ("work", "suspicions")
    )
    return _Found(work, pl.concat([one.verdicts, other.verdicts]), suspicions, pl.concat([one.opened, other.opened]))


def _rewritten(problems: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    names = REWRITTEN.names()[1:]
    changed = pl.any_horizontal(problems[name].ne_missing(rows[name]) for name in names)
    return rows.rename({"_at": "at"}).select(REWRITTEN.names()).filter(changed).cast(REWRITTEN)


def _marked(meta: pl.Series, code: dict[int, list[str]]) -> pl.Series:
    """Return the rows' ``meta``, with a mark where figures stand in the statement as code."""
    tables = meta.to_list() if code else []
    for at, pieces in code.items():
        tables[at] = figures.marked(tables[at], pieces)
    return pl.Series("meta", tables, pl.String) if code else meta


def _lost_figures(work: pl.DataFrame, code: dict[int, list[str]]) -> pl.DataFrame:
    """Return the verdict on rows that were opened without one of their figures: they needed their options."""
    lost = pl.Series("_at", figures.lost(work["statement"], code), pl.UInt32)
    needed = pl.lit(str(DropReason.CHOICES_NEEDED))
    return lost.to_frame().select(
        "_at", rule=pl.lit(CHOICES_RULE), reason=needed, evidence=pl.lit("a figure among the options")
    )


def _found(work: pl.DataFrame, settings: StatementSettings) -> _Found:
    """Return what is found in rows that have been cleaned."""
    rewritten = refused = pl.DataFrame(schema=VERDICT)
    if CHOICES_RULE not in settings.disabled:
        work, rewritten, refused = opened(work)
    looked_at = gates(work, rules_for(settings))
    verdicts = pl.concat([refused, *_ruled(work, looked_at, settings)])
    certain = verdicts.filter(pl.col("rule").is_in(CERTAIN))["_at"]
    left = work["_at"].is_in(certain.implode()).not_()
    rows = work.filter(left)
    suspicions = _suspected(rows, _suspicions(rows, looked_at.filter(left), settings, rewritten))
    suspicions = work.select("_at").join(suspicions, on="_at", how="left", maintain_order="left")
    suspicions = suspicions.with_columns(pl.col("score").fill_null(1.0))
    return _Found(work, _incomplete(verdicts, rewritten), _incomplete(suspicions, rewritten), rewritten)


def _incomplete(verdicts: pl.DataFrame, rewritten: pl.DataFrame) -> pl.DataFrame:
    """Return verdicts in which a question that lacks something after its options were taken away needed them."""
    lacks = pl.col("rule").is_in(_NEEDS_OPTIONS) & pl.col("_at").is_in(rewritten["_at"].implode())
    needed = pl.lit(str(DropReason.CHOICES_NEEDED))
    return verdicts.with_columns(pl.when(lacks).then(needed).otherwise("reason").alias("reason"))


def _ruled(work: pl.DataFrame, looked_at: pl.DataFrame, settings: StatementSettings) -> list[pl.DataFrame]:
    """Run the trusted rules, and return their verdicts; behind one that is certain, no rule looks any more.

    ``looked_at`` holds the rows' gates.
    """
    rules = [rule for rule in rules_for(settings) if rule.name not in scoring.FEATURE_RULES]
    alive = pl.repeat(True, work.height, eager=True)
    verdicts = []
    for rule in rules:
        fired = _fired(rule, work.filter(looked_at[rule.name] & alive))
        if fired.height:
            verdicts.append(fired)
            if rule.name in CERTAIN:
                alive &= work["_at"].is_in(fired["_at"].implode()).not_()
    return verdicts


def _fired(rule: StatementRule, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the verdicts of a rule on rows that its gate let through."""
    if rows.is_empty():  # an expression costs its compiling even where there is nothing to look at
        return pl.DataFrame(schema=VERDICT)
    found = rows.lazy().select(  # lazily: what stands twice in an expression is worked out once
        "_at", rule=pl.lit(rule.name), reason=pl.lit(str(rule.reason)), evidence=rule.evidence
    )
    return found.collect().filter(pl.col("evidence").is_not_null()).cast(VERDICT)


def _suspicions(
    rows: pl.DataFrame, looked_at: pl.DataFrame, settings: StatementSettings, rewritten: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Return by `scoring.HITS` what is found in rows, as verdicts; a rule that is switched off finds nothing."""
    doubts = rewritten.filter(pl.col("_at").is_in(rows["_at"].implode()) & pl.col("evidence").is_not_null())
    needed = pl.lit(str(DropReason.CHOICES_NEEDED))
    found = {
        CHOICES_RULE: doubts.select("_at", rule=pl.lit(CHOICES_RULE), reason=needed, evidence="evidence").cast(VERDICT)
    }
    rules = [rule for rule in rules_for(settings) if rule.name in scoring.FEATURE_RULES]
    whole = rows["_at"].is_in(rewritten["_at"].implode()).not_()
    for rule in rules:
        gate = looked_at[rule.name] & whole if rule in broken_off.RULES else looked_at[rule.name]
        found[rule.name] = _fired(rule, rows.filter(gate))
    if (tasks := found.pop("no_task", None)) is not None:
        was_opened = pl.col("_at").is_in(rewritten["_at"].implode())
        found |= {"no_task": tasks.filter(~was_opened), scoring.OPENED: tasks.filter(was_opened)}
    for rule in broken_off.RULES:  # that nothing is asked says more than where the text ends
        if rule.name in found:
            found[rule.name] = found.pop(rule.name)
    return found


def _with_hits(rows: pl.DataFrame, found: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Return ``_at``, statement and answer of rows, and for each of `scoring.HITS` whether it found something."""
    nothing = pl.Series("_at", [], pl.UInt32)
    return rows.select("_at", "statement", "answer").with_columns(
        rows["_at"].is_in((found[name]["_at"] if name in found else nothing).implode()).alias(name)
        for name in scoring.HITS
    )


def _suspected(rows: pl.DataFrame, found: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Return ``_at``, the classifier's score, and of the rules that found something in a row the first."""
    scores = scoring.score(_with_hits(rows, found)) if rows.height else []
    first = pl.concat([pl.DataFrame(schema=VERDICT), *found.values()]).unique("_at", keep="first", maintain_order=True)
    scored = rows.select("_at").with_columns(pl.Series("score", scores, pl.Float64))
    return scored.join(first, on="_at", how="left", maintain_order="left")


def suspicious_rows(problems: pl.DataFrame, settings: StatementSettings) -> pl.DataFrame:
    """Return the rows that no trusted rule drops as the classifier sees them: ``_at``, statement, answer, and a column
    for each of `scoring.HITS`.
    """
    work = figures.take_out(problems.select(WORKED_ON).with_row_index("_at"))[0]
    work, rewritten, refused = opened(cleaned(work))
    looked_at = gates(work, rules_for(settings))
    settled = pl.concat([refused["_at"], *(verdicts["_at"] for verdicts in _ruled(work, looked_at, settings))])
    left = work["_at"].is_in(settled.implode()).not_()
    alive = work.filter(left)
    return _with_hits(alive, _suspicions(alive, looked_at.filter(left), settings, rewritten))
