"""Rows through the format filter: what is found in them, then the thresholds, of rules first and of the classifier.

Invariants:
  - kept + dropped = in, row for row; both keep the order of the input; the result depends on nothing but the input
    and the settings;
  - every drop has a score, and another threshold reads no text: what was measured decides again;
  - a dropped row is handed on as it came; a kept row whose statement or answer was rewritten holds the original in
    ``raw_statement`` or ``raw_answer``;
  - an answer is rewritten only where the verifier reads old and new as the same (rewriting.py);
  - a figure's code is seen by no rule and changed by nothing; a kept row with one has ``figure_code`` in ``meta``;
  - after the filter ``choices`` is null in every kept row, unless the rule ``choices`` is switched off or is below
    ``drop_from``.

Pure functions over frames: no file is read or written here.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from curation.config import StatementSettings
from curation.filters.statements import figures
from curation.filters.statements.measuring import SCORES, WORKED_ON, Measured, measure
from curation.filters.statements.rewriting import cleaned
from curation.records import DROPPED, PROBLEM, DropReason

STAGE, THRESHOLD_STAGE = "statements", "usability"
CLASSIFIER = "classifier"
"""In the place of a rule's name, where a row leaves by its score and no rule found anything."""
USABLE = "usable"
"""The decision of a model's votes that keeps a row."""
_VERDICT = ("rule", "reason", "evidence")


@dataclass(frozen=True, slots=True)
class FilterResult:
    """What the format filter kept, in the `PROBLEM` schema, and what it dropped, in the `DROPPED` schema."""

    kept: pl.DataFrame
    dropped: pl.DataFrame
    scores: pl.DataFrame
    """Of the kept ones, in the `SCORES` schema."""


def filter_statements(problems: pl.DataFrame, settings: StatementSettings | None = None) -> FilterResult:
    """Keep complete open problems with one answer, rewriting what can be; drop the others with reason and evidence.

    The evidence names the rule, then what it saw, then the score.

    ``problems`` is in the `PROBLEM` schema. Math and code rows are treated alike; hand over math rows only.
    """
    settings = settings or StatementSettings()
    measured = measure(problems, settings)
    return _split(problems, measured, _with_scores(_by_rules(problems.height, measured, settings), settings))


def score_statements(problems: pl.DataFrame, settings: StatementSettings) -> FilterResult:
    """Return the same before the classifier's thresholds: what no trusted rule drops is kept, with its score."""
    return drop_ruled(problems, measure(problems, settings), settings)


def drop_ruled(problems: pl.DataFrame, measured: Measured, settings: StatementSettings) -> FilterResult:
    """Split rows by what was measured of them: those that a rule drops from ``drop_from`` on, and the others.

    What a rule below it finds is a suspicion, weighed like those of the rules that never drop a row alone.
    """
    return _split(problems, measured, _by_rules(problems.height, measured, settings))


def drop_unusable(
    kept: pl.DataFrame, scores: pl.DataFrame, settings: StatementSettings, votes: pl.DataFrame | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split rows that the rules kept by their scores: those below the thresholds, and the others, dropped.

    A dropped row is handed on as the filter rewrote it, with what it was in ``raw_*``.

    Args:
        votes: a model's on some of them, by ``at``: their ``decision`` comes before the scores, if there is one.
    """
    absent = [pl.lit(None, dtype=pl.String).alias(name) for name in _VERDICT]
    judged = scores.select("score", *absent, *(pl.col(name).alias(f"s_{name}") for name in _VERDICT))
    if votes is not None:
        voted = votes.select("at", "decision", vote_evidence=pl.coalesce("why", "evidence"))
        judged = judged.with_row_index("at").join(voted, on="at", how="left", maintain_order="left")
    verdicts = _with_scores(judged, settings)
    rows = kept.with_columns(stage=pl.lit(THRESHOLD_STAGE), reason=verdicts["reason"], evidence=_evidence(verdicts))
    dropped = rows.filter(pl.col("reason").is_not_null())
    return rows.filter(pl.col("reason").is_null()).select(PROBLEM.names()), dropped.select(DROPPED.names())


def _by_rules(height: int, measured: Measured, settings: StatementSettings) -> pl.DataFrame:
    """Return one row per row: rule, reason and evidence of the first verdict from ``drop_from`` on, null where there is
    none; its score, or the classifier's; and as ``s_*`` the first finding that is not trusted alone.
    """
    trusted = pl.col("score") >= settings.drop_from
    drops, weak = (measured.verdicts.filter(keep).unique("at", keep="first") for keep in (trusted, ~trusted))
    rows = pl.DataFrame({"at": pl.int_range(height, dtype=pl.UInt32, eager=True)})
    of_rules = rows.join(drops, on="at", how="left", maintain_order="left")
    of_weak = rows.join(weak, on="at", how="left", maintain_order="left")
    return of_rules.select("at", *_VERDICT).with_columns(
        of_rules["score"].fill_null(measured.scores["score"]),
        *(of_weak[name].fill_null(measured.scores[name]).alias(f"s_{name}") for name in _VERDICT),
    )


def _with_scores(judged: pl.DataFrame, settings: StatementSettings) -> pl.DataFrame:
    """Return verdicts in which rows without one are dropped from a score on, or by the ``decision`` of a model's votes,
    whose evidence is added.
    """
    suspected = pl.col("s_rule").is_not_null() & (pl.col("score") >= settings.suspected_from)
    by_score = suspected | (pl.col("score") >= settings.unusable_from)
    word: pl.Expr = pl.lit("")
    if "decision" in judged.columns:
        by_score = pl.coalesce(pl.col("decision") != USABLE, by_score)
        word = pl.format("; {}", "vote_evidence").fill_null("")
    unusable = pl.col("reason").is_null() & by_score
    verdict = {
        "rule": pl.col("s_rule").fill_null(CLASSIFIER),
        "reason": pl.col("s_reason").fill_null(str(DropReason.UNUSABLE)),
        "evidence": pl.col("s_evidence").fill_null("n-grams and features"),
    }
    return judged.with_columns(
        pl.when(unusable).then(word).otherwise(pl.lit("")).alias("word"),
        *(pl.when(unusable).then(text).otherwise(name).alias(name) for name, text in verdict.items()),
    )


def _evidence(verdicts: pl.DataFrame) -> pl.Series:
    word = pl.col("word") if "word" in verdicts.columns else pl.lit("")
    return verdicts.select(pl.format("{}: {}, score {}{}", "rule", "evidence", "score", word)).to_series()


def _rewritten(problems: pl.DataFrame, measured: Measured) -> pl.DataFrame:
    """Return statement, answer, choices and meta of each row as the filter leaves them, as ``_statement`` and so on."""
    changes = measured.rewritten.with_columns(_changed=pl.lit(True))
    rows = problems.with_row_index("at").join(changes, on="at", how="left", suffix="_new", maintain_order="left")
    names = measured.rewritten.columns[1:]
    return rows.select(
        pl.when(pl.col("_changed")).then(f"{name}_new").otherwise(name).alias(f"_{name}") for name in names
    )


def _split(problems: pl.DataFrame, measured: Measured, verdicts: pl.DataFrame) -> FilterResult:
    rows = problems.hstack(_rewritten(problems, measured)).with_columns(
        verdicts["reason"], _evidence(verdicts).alias("evidence"), pl.lit(STAGE).alias("stage")
    )
    is_kept = rows["reason"].is_null()
    kept = rows.filter(is_kept).with_columns(
        *(_raw(name) for name in ("statement", "answer")),
        *(pl.col(f"_{name}").alias(name) for name in ("statement", "answer", "choices", "meta")),
    )
    scores = problems.select("id", "row").with_columns(
        verdicts["score"], *(verdicts[f"s_{name}"].alias(name) for name in _VERDICT)
    )
    return FilterResult(
        kept.select(PROBLEM.names()).cast(PROBLEM),
        rows.filter(~is_kept).select(DROPPED.names()).cast(DROPPED),
        scores.filter(is_kept).match_to_schema(SCORES),
    )


def _raw(name: str) -> pl.Expr:
    """Return the text before rewriting: what an earlier stage kept, else the original where this one changed it."""
    changed = pl.col(name).ne_missing(pl.col(f"_{name}"))
    return pl.coalesce(pl.col(f"raw_{name}"), pl.when(changed).then(name)).alias(f"raw_{name}")


def classify(rows: pl.DataFrame, settings: StatementSettings | None = None) -> pl.DataFrame:
    """Return one line per row, in input order: id, keep, reason, evidence, statement, answer, rule, score.

    ``rows`` needs a ``statement``; ``answer``, ``choices``, ``lang``, ``source``, ``meta`` and ``id`` are used where
    they are there, and the row's number stands in for a missing ``id``. Statement and answer are the rewritten ones
    where the row is kept, the original ones where it is dropped. The score is that of the rule that drops the row, or
    the classifier's.
    """
    present = [pl.col(name).cast(PROBLEM[name]) for name in WORKED_ON if name in rows.columns]
    absent = [pl.lit(None, dtype=PROBLEM[name]).alias(name) for name in WORKED_ON if name not in rows.columns]
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
    where kept; the score of the rule that drops it, or the classifier's.
    """
    settings = settings or StatementSettings()
    absent = [pl.lit(None, dtype=PROBLEM[name]).alias(name) for name in ("id", "row") if name not in problems.columns]
    rows = problems.with_columns(absent)
    measured = measure(rows, settings)
    verdicts = _with_scores(_by_rules(rows.height, measured, settings), settings)
    texts = _rewritten(rows, measured)
    return texts.select(pl.col(f"_{name}").alias(name) for name in ("statement", "answer", "choices")).hstack(
        verdicts.select(*_VERDICT, "score")
    )


def clean_statements(problems: pl.DataFrame) -> pl.DataFrame:
    """Return the columns that the filter reads, without debris, and the rows' places as ``_at``."""
    work, code = figures.take_out(problems.select(WORKED_ON).with_row_index("_at"))
    work = cleaned(work)
    return work.with_columns(figures.put_back(work["statement"], code))
