"""Rows through the format filter: clean, open the multiple choice, then every rule in order of precedence.

Invariants:
  - kept + dropped = in, row for row; both keep the order of the input; the result depends on nothing but the input
    and the settings;
  - a dropped row is handed on as it came; a kept row whose statement or answer was rewritten holds the original in
    ``raw_statement`` or ``raw_answer``;
  - an answer is rewritten only where the verifier reads old and new as the same (`curation.verify.rewriting`);
  - a figure's code is seen by no rule and changed by nothing; a kept row with one has ``figure_code`` in ``meta``;
  - after the filter ``choices`` is null in every kept row, unless the rule ``choices`` is switched off.

Pure functions over frames: no file is read or written here.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import polars as pl

from curation.config import StatementSettings
from curation.filters.multiple_choice import is_multiple_choice, open_questions
from curation.filters.statements import cleaning, figures, scoring
from curation.filters.statements.expressions import StatementRule
from curation.filters.statements.rules import rules_for
from curation.records import DROPPED, PROBLEM, DropReason
from curation.verify.rewriting import keep_reference

# Rules that say a question is not complete: where the options were its other half, they are what it lacks.
_NEEDS_OPTIONS = ("missing_statement", "no_task", "cut_off", "series_guess", "several_answers", "textual_answer")

STAGE, THRESHOLD_STAGE = "statements", "usability"
CLASSIFIER = "classifier"
"""In the place of a rule's name, where a row leaves by its score and no rule found anything."""
CHOICES_RULE = "choices"

_WORKED_ON = ("statement", "answer", "choices", "lang", "source", "meta")
_VERDICT = pl.Schema({"_at": pl.UInt32, "rule": pl.String, "reason": pl.String, "evidence": pl.String})
_SUSPICION = pl.Schema(
    {"_at": pl.UInt32, "score": pl.Float64, **{f"s_{name}": pl.String for name in _VERDICT.names()[1:]}}
)
SCORES = pl.Schema(
    {
        "id": pl.String(),
        "row": pl.Int64(),
        "score": pl.Float64(),  # probability that the row cannot be used as it stands
        "rule": pl.String(),  # the first of `FEATURE_RULES` that found something, and what; null where none did
        "reason": pl.String(),
        "evidence": pl.String(),
    }
)
"""One row per row that the rules kept, in order."""
_MAX_EVIDENCE = 300
_MANY = 20_000
"""Rows from which those that may be multiple choice, worked on in Python, are judged beside the others, in polars."""


@dataclass(frozen=True, slots=True)
class FilterResult:
    """What the format filter kept, in the `PROBLEM` schema, and what it dropped, in the `DROPPED` schema."""

    kept: pl.DataFrame
    dropped: pl.DataFrame
    is_kept: pl.Series
    """One a row that went in, in order."""
    scores: pl.DataFrame
    """Of the kept ones, in the `SCORES` schema."""


def filter_statements(problems: pl.DataFrame, settings: StatementSettings | None = None) -> FilterResult:
    """Keep complete open problems with one answer, rewriting what can be; drop the others with reason and evidence.

    The evidence names the rule, then what it saw.

    ``problems`` is in the `PROBLEM` schema. Math and code rows are treated alike; hand over math rows only.
    """
    settings = settings or StatementSettings()
    judged, code = _apply(problems, settings)
    return _result(problems, with_thresholds(judged, settings), code)


def score_statements(problems: pl.DataFrame, settings: StatementSettings) -> FilterResult:
    """Return the same before the threshold: what no trusted rule drops is kept, with its score."""
    return _result(problems, *_apply(problems, settings))


def drop_unusable(
    kept: pl.DataFrame, scores: pl.DataFrame, settings: StatementSettings, opinions: pl.DataFrame | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split rows that the rules kept by their scores: those below the thresholds, and the others, dropped.

    A dropped row is handed on as the filter rewrote it, with what it was in ``raw_*``.

    Args:
        opinions: what a model's votes decide of some of them, as `opinions.decide_opinions` returns it.
    """
    names = _VERDICT.names()[1:]
    absent = [pl.lit(None, dtype=pl.String).alias(name) for name in names]
    judged = scores.select("score", *absent, *(pl.col(name).alias(f"s_{name}") for name in names)).with_row_index("at")
    if opinions is not None:
        judged = judged.join(opinions, on="at", how="left", maintain_order="left")
    verdicts = with_thresholds(judged, settings)
    rows = kept.with_columns(stage=pl.lit(THRESHOLD_STAGE), reason=verdicts["reason"], evidence=_evidence(verdicts))
    dropped = rows.filter(pl.col("reason").is_not_null())
    return rows.filter(pl.col("reason").is_null()).select(PROBLEM.names()), dropped.select(DROPPED.names())


def with_thresholds(judged: pl.DataFrame, settings: StatementSettings) -> pl.DataFrame:
    """Return verdicts in which rows without one are dropped from a score on, or by what a model says of them
    (``model_keeps``, ``model_word``); the score stands in the evidence, and the model's word.
    """
    suspected = pl.col("s_rule").is_not_null() & (pl.col("score") >= settings.suspected_from)
    by_score = suspected | (pl.col("score") >= settings.unusable_from)
    word: pl.Expr = pl.lit("")
    if "model_keeps" in judged.columns:
        by_score = pl.coalesce(~pl.col("model_keeps"), by_score)
        word = pl.format("; {}", "model_word").fill_null("")
    unusable = pl.col("reason").is_null() & by_score
    verdict = {
        "rule": pl.col("s_rule").fill_null(CLASSIFIER),
        "reason": pl.col("s_reason").fill_null(str(DropReason.UNUSABLE)),
        "evidence": pl.format("{}, score {}{}", pl.col("s_evidence").fill_null("n-grams and features"), "score", word),
    }
    return judged.with_columns(
        pl.when(unusable).then(text).otherwise(name).alias(name) for name, text in verdict.items()
    )


def _evidence(verdicts: pl.DataFrame) -> pl.Series:
    return verdicts.select(pl.format("{}: {}", "rule", "evidence")).to_series()


def _result(problems: pl.DataFrame, judged: pl.DataFrame, code: dict[int, list[str]]) -> FilterResult:
    rows = problems.with_columns(
        _marked(problems["meta"], code),
        *(judged[name].alias(f"_{name}") for name in ("statement", "answer", "choices", "rule", "reason", "evidence")),
    )
    kept = rows.filter(pl.col("_reason").is_null()).with_columns(
        *(_raw(name) for name in ("statement", "answer")),
        *(pl.col(f"_{name}").alias(name) for name in ("statement", "answer", "choices", "meta")),
    )
    dropped = rows.filter(pl.col("_reason").is_not_null()).with_columns(
        stage=pl.lit(STAGE), reason=pl.col("_reason"), evidence=pl.format("{}: {}", "_rule", "_evidence")
    )
    return FilterResult(
        kept.select(PROBLEM.names()).cast(PROBLEM),
        dropped.select(DROPPED.names()).cast(DROPPED),
        judged["reason"].is_null().alias("is_kept"),
        judged.select(problems["id"], problems["row"], "score", rule="s_rule", reason="s_reason", evidence="s_evidence")
        .filter(judged["reason"].is_null())
        .cast(SCORES),
    )


def _marked(meta: pl.Series, code: dict[int, list[str]]) -> pl.Series:
    """Return the rows' ``meta`` as ``_meta``, with a mark where figures stand in the statement as code."""
    tables = meta.to_list() if code else []
    for at, pieces in code.items():
        tables[at] = figures.marked(tables[at], pieces)
    return pl.Series("_meta", tables, pl.String) if code else meta.alias("_meta")


def classify(rows: pl.DataFrame, settings: StatementSettings | None = None) -> pl.DataFrame:
    """Return one line per row, in input order: id, keep, reason, evidence, statement, answer, rule, score.

    ``rows`` needs a ``statement``; ``answer``, ``choices``, ``lang``, ``source``, ``meta`` and ``id`` are used where
    they are there, and the row's number stands in for a missing ``id``. Statement and answer are the rewritten ones
    where the row is kept, the original ones where it is dropped.
    """
    present = [pl.col(name).cast(PROBLEM[name]) for name in _WORKED_ON if name in rows.columns]
    absent = [pl.lit(None, dtype=PROBLEM[name]).alias(name) for name in _WORKED_ON if name not in rows.columns]
    judged = apply_rules(rows.select(*present, *absent), settings)
    dropped = judged["reason"].is_not_null()
    ids = rows["id"].cast(pl.String) if "id" in rows.columns else pl.int_range(rows.height, eager=True).cast(pl.String)
    original = {
        name: rows[name].cast(pl.String)
        if name in rows.columns
        else pl.repeat(None, rows.height, dtype=pl.String, eager=True)
        for name in ("statement", "answer")
    }
    return judged.select(
        ids.alias("id"),
        keep=dropped.not_(),
        reason="reason",
        evidence="evidence",
        statement=pl.when(dropped).then(original["statement"]).otherwise("statement"),
        answer=pl.when(dropped).then(original["answer"]).otherwise("answer"),
        rule="rule",
        score="score",
    )


def apply_rules(problems: pl.DataFrame, settings: StatementSettings | None = None) -> pl.DataFrame:
    """Return for each row, in order: statement, answer and choices after rewriting; rule, reason and evidence, null
    where kept; the score, 1 where a trusted rule dropped it.
    """
    settings = settings or StatementSettings()
    judged = with_thresholds(_apply(problems, settings)[0], settings)
    return judged.drop("s_rule", "s_reason", "s_evidence")


def _apply(problems: pl.DataFrame, settings: StatementSettings) -> tuple[pl.DataFrame, dict[int, list[str]]]:
    """Return the same, and the code of figures by row."""
    work, code = figures.take_out(problems.select(_WORKED_ON).with_row_index("_at"))
    work = _cleaned(work) if settings.clean else work
    if work.height < _MANY or CHOICES_RULE in settings.disabled:
        judged = _judged(work, settings)
    else:
        is_choice = is_multiple_choice()
        with ThreadPoolExecutor(max_workers=1) as beside:
            others = beside.submit(_judged, work.filter(~is_choice), settings)
            judged = pl.concat([_judged(work.filter(is_choice), settings), others.result()]).sort("_at")
    return _with_figures(judged, code).drop("_at"), code


def _with_figures(judged: pl.DataFrame, code: dict[int, list[str]]) -> pl.DataFrame:
    """Put the code of figures back; a row that was opened without one of them needed its options."""
    if not code:
        return judged
    without = pl.col("_at").is_in(figures.lost(judged["statement"], code)) & pl.col("reason").is_null()
    verdict = (pl.lit(CHOICES_RULE), pl.lit(str(DropReason.CHOICES_NEEDED)), pl.lit("a figure among the options"))
    return judged.with_columns(
        *(
            pl.when(without).then(value).otherwise(name).alias(name)
            for name, value in zip(("rule", "reason", "evidence"), verdict, strict=True)
        ),
        figures.put_back(judged["statement"], code),
    )


def clean_statements(problems: pl.DataFrame, settings: StatementSettings) -> pl.DataFrame:
    """Return the columns that the filter reads, without debris, and the rows' places as ``_at``."""
    work, code = figures.take_out(problems.select(_WORKED_ON).with_row_index("_at"))
    work = _cleaned(work) if settings.clean else work
    return work.with_columns(figures.put_back(work["statement"], code))


def _judged(work: pl.DataFrame, settings: StatementSettings) -> pl.DataFrame:
    """Return the verdicts on rows that have been cleaned, with their ``_at``."""
    opened = refused = pl.DataFrame(schema=_VERDICT)
    if CHOICES_RULE not in settings.disabled:
        work, opened, refused = _opened(work)
    ruled = pl.concat([pl.DataFrame(schema=_VERDICT), *_ruled(work, settings, refused, opened)])
    verdict = pl.concat([refused, _incomplete(ruled, "", opened)])
    alive = work.filter(work["_at"].is_in(verdict["_at"].implode()).not_())
    suspicion = _incomplete(_suspected(alive, _suspicions(alive, settings, opened)), "s_", opened)
    return (
        work.join(verdict, on="_at", how="left", maintain_order="left")
        .join(suspicion, on="_at", how="left", maintain_order="left")
        .select(
            "_at", "statement", "answer", "choices", "rule", "reason", pl.col("evidence").str.head(_MAX_EVIDENCE),
            pl.col("score").fill_null(1.0), "s_rule", "s_reason", pl.col("s_evidence").str.head(_MAX_EVIDENCE),
        )
    )  # fmt: skip


def _incomplete(verdicts: pl.DataFrame, prefix: str, opened: pl.DataFrame) -> pl.DataFrame:
    """Return verdicts in which a question that lacks something after its options were taken away needed them."""
    lacks = pl.col(f"{prefix}rule").is_in(_NEEDS_OPTIONS) & pl.col("_at").is_in(opened["_at"].implode())
    needed, reason = pl.lit(str(DropReason.CHOICES_NEEDED)), f"{prefix}reason"
    return verdicts.with_columns(pl.when(lacks).then(needed).otherwise(reason).alias(reason))


def _suspicions(rows: pl.DataFrame, settings: StatementSettings, opened: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return what each of `FEATURE_RULES` finds in rows, as verdicts; a rule that is switched off finds nothing."""
    doubts = opened.filter(pl.col("_at").is_in(rows["_at"].implode()) & pl.col("evidence").is_not_null())
    needed = pl.lit(str(DropReason.CHOICES_NEEDED))
    found = {
        CHOICES_RULE: doubts.select("_at", rule=pl.lit(CHOICES_RULE), reason=needed, evidence="evidence").cast(_VERDICT)
    }
    was_opened = rows["_at"].is_in(opened["_at"].implode())
    for rule in rules_for(settings):
        if rule.name in scoring.FEATURE_RULES:
            gate = rows.select(rule.gate.fill_null(False)).to_series()
            found[rule.name] = _fired(rule, rows.filter(gate & was_opened if rule.name in scoring.OF_OPENED else gate))
    return found


def _with_hits(rows: pl.DataFrame, found: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Return ``_at``, statement and answer of rows, and for each of `FEATURE_RULES` whether it found something."""
    nothing = pl.Series("_at", [], pl.UInt32)
    return rows.select("_at", "statement", "answer").with_columns(
        rows["_at"].is_in((found[name]["_at"] if name in found else nothing).implode()).alias(name)
        for name in scoring.FEATURE_RULES
    )


def _suspected(rows: pl.DataFrame, found: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the score of each row, and of the rules that found something in it the first."""
    scores = scoring.score(_with_hits(rows, found)) if rows.height else []
    first = pl.concat([pl.DataFrame(schema=_VERDICT), *found.values()]).unique("_at", keep="first", maintain_order=True)
    named = first.rename({name: f"s_{name}" for name in _VERDICT.names()[1:]})
    scored = rows.select("_at").with_columns(pl.Series("score", scores, pl.Float64))
    return scored.join(named, on="_at", how="left", maintain_order="left").select(_SUSPICION.names())


def suspicious_rows(problems: pl.DataFrame, settings: StatementSettings) -> pl.DataFrame:
    """Return the rows that no trusted rule drops as the classifier sees them: ``_at``, statement, answer, and a column
    for each of `FEATURE_RULES`.
    """
    work = figures.take_out(problems.select(_WORKED_ON).with_row_index("_at"))[0]
    work, opened, refused = _opened(_cleaned(work) if settings.clean else work)
    settled = [refused["_at"], *(verdicts["_at"] for verdicts in _ruled(work, settings, refused, opened))]
    alive = work.filter(work["_at"].is_in(pl.concat(settled).implode()).not_())
    return _with_hits(alive, _suspicions(alive, settings, opened))


def _raw(name: str) -> pl.Expr:
    """Return the text before rewriting: what an earlier stage kept, else the original where this one changed it."""
    changed = pl.col(name).ne_missing(pl.col(f"_{name}"))
    return pl.coalesce(pl.col(f"raw_{name}"), pl.when(changed).then(name)).alias(f"raw_{name}")


def _replaced(work: pl.DataFrame, changes: pl.DataFrame) -> pl.DataFrame:
    """Return ``work`` with the columns of ``changes`` put in at its ``_at``; a null there is a change, too."""
    if changes.is_empty():
        return work
    names = [name for name in changes.columns if name != "_at"]
    joined = work.join(
        changes.with_columns(_changed=pl.lit(True)), on="_at", how="left", suffix="_new", maintain_order="left"
    )
    return joined.with_columns(
        pl.when(pl.col("_changed")).then(f"{name}_new").otherwise(name).alias(name) for name in names
    ).select(work.columns)


def _cleaned(work: pl.DataFrame) -> pl.DataFrame:
    """Remove debris, working only on the rows that hold any."""
    for name in ("statement", "answer"):
        labels = name == "statement"
        dirty = work.select("_at", name).filter(cleaning.has_debris(name, labels))
        if dirty.height:
            cleaned = cleaning.clean_text(dirty, name, labels)
            work = _replaced(work, cleaned if labels else _checked(dirty, cleaned, name))
    options = work.select("_at", "choices").filter(pl.col("choices").list.len() > 0).explode("choices")
    if options.is_empty():
        return work
    options = options.with_columns(dirty=cleaning.has_debris("choices", False).any().over("_at")).filter("dirty")
    if options.is_empty():
        return work
    tidy = _checked(options, cleaning.clean_text(options, "choices", False), "choices")
    return _replaced(work, tidy.group_by("_at", maintain_order=True).agg("choices"))


def _checked(frame: pl.DataFrame, cleaned: pl.DataFrame, column: str) -> pl.DataFrame:
    """Return the cleaned answers, less those that the verifier no longer reads as the same: they stay as they were,
    entities aside, which are characters in another writing.
    """
    texts = zip(cleaning.decoded(frame[column]), cleaned[column], strict=True)
    kept = [None if old is None or new is None else keep_reference(old, new) for old, new in texts]
    return cleaned.with_columns(pl.Series(column, kept, pl.String))


def _opened(work: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Rewrite multiple choice to open questions; return the rows, which of them were rewritten with what makes them
    doubtful, and the verdicts on those that cannot be.
    """
    candidates = work.filter(is_multiple_choice())
    outcome = open_questions(candidates)
    opened = outcome.filter(pl.col("opened"))
    refused = outcome.filter(pl.col("reason").is_not_null())
    changes = opened.select("_at", "statement", "answer", pl.lit(None, dtype=PROBLEM["choices"]).alias("choices"))
    verdict = refused.select("_at", pl.lit(CHOICES_RULE).alias("rule"), "reason", "evidence")
    return _replaced(work, changes), opened.select("_at", "evidence"), verdict.cast(_VERDICT)


def _ruled(
    work: pl.DataFrame, settings: StatementSettings, settled: pl.DataFrame, opened: pl.DataFrame
) -> list[pl.DataFrame]:
    """Run the trusted rules on rows not yet settled, and return their verdicts; each rule sees what the ones before it
    left.
    """
    untrusted = set(scoring.FEATURE_RULES) - set(scoring.OF_OPENED)
    rules = [rule for rule in rules_for(settings) if rule.name not in untrusted]
    was_opened = work["_at"].is_in(opened["_at"].implode())
    gates = work.select(rule.gate.fill_null(False).alias(rule.name) for rule in rules)
    alive = work["_at"].is_in(settled["_at"].implode()).not_()
    verdicts = []
    for rule in rules:
        trusted = ~was_opened if rule.name in scoring.OF_OPENED else True
        fired = _fired(rule, work.filter(gates[rule.name] & alive & trusted))
        if fired.height:
            alive &= work["_at"].is_in(fired["_at"].implode()).not_()
            verdicts.append(fired)
    return verdicts


def _fired(rule: StatementRule, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the verdicts of a rule on rows that its gate let through."""
    if rows.is_empty():  # an expression costs its compiling even where there is nothing to look at
        return pl.DataFrame(schema=_VERDICT)
    verdicts = rows.select("_at", rule=pl.lit(rule.name), reason=pl.lit(str(rule.reason)), evidence=rule.evidence)
    return verdicts.filter(pl.col("evidence").is_not_null()).cast(_VERDICT)
