"""What the format filter rewrites before any rule looks: debris taken away, multiple choice opened.

An answer is rewritten only where the verifier reads old and new as the same (`curation.verify.rewriting`). Pure
functions over frames with the rows' places as ``_at``.
"""

from __future__ import annotations

import polars as pl

from curation.filters.multiple_choice import is_multiple_choice, open_questions, tidy_answer
from curation.filters.statements import cleaning
from curation.options import tidy_option
from curation.records import PROBLEM
from curation.verify.rewriting import keep_reference

CHOICES_RULE = "choices"
VERDICT = pl.Schema({"_at": pl.UInt32, "rule": pl.String, "reason": pl.String, "evidence": pl.String})


def replaced(work: pl.DataFrame, changes: pl.DataFrame) -> pl.DataFrame:
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


def cleaned(work: pl.DataFrame) -> pl.DataFrame:
    """Remove debris, working only on the rows that hold any."""
    for name in ("statement", "answer"):
        labels = name == "statement"
        dirty = work.select("_at", name).filter(cleaning.has_debris(name, labels))
        if dirty.height:
            tidy = cleaning.clean_text(dirty, name, labels)
            work = replaced(work, tidy if labels else _checked(dirty, tidy, name))
    options = work.select("_at", "choices").filter(pl.col("choices").list.len() > 0).explode("choices")
    if options.is_empty():
        return work
    options = options.with_columns(dirty=cleaning.has_debris("choices", False).any().over("_at")).filter("dirty")
    if options.is_empty():
        return work
    tidy = _checked(options, cleaning.clean_text(options, "choices", False), "choices")
    return replaced(work, tidy.group_by("_at", maintain_order=True).agg("choices"))


def _checked(frame: pl.DataFrame, cleaned: pl.DataFrame, column: str) -> pl.DataFrame:
    """Return the cleaned answers, less those that the verifier no longer reads as the same: they stay as they were,
    entities and names of characters aside, which are these characters in another writing.
    """
    texts = zip(cleaning.decoded(frame[column]), cleaned[column], strict=True)
    kept = [None if old is None or new is None else keep_reference(old, new) for old, new in texts]
    return cleaned.with_columns(pl.Series(column, kept, pl.String))


def without_layout(answers: pl.Series) -> pl.Series:
    """Return answers without debris and layout, whether the verifier reads them as the same or not."""
    frame = pl.DataFrame({"answer": answers.cast(pl.String)})
    texts = cleaning.clean_text(frame, "answer", False)["answer"]
    return pl.Series([None if text is None else tidy_answer(tidy_option(text)) for text in texts], dtype=pl.String)


def opened(work: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Rewrite multiple choice to open questions; return the rows, which of them were rewritten with what makes them
    doubtful, and the verdicts on those that cannot be.
    """
    candidates = work.filter(is_multiple_choice())
    outcome = open_questions(candidates)
    rewritten = outcome.filter(pl.col("opened"))
    refused = outcome.filter(pl.col("reason").is_not_null())
    changes = rewritten.select("_at", "statement", "answer", pl.lit(None, dtype=PROBLEM["choices"]).alias("choices"))
    verdict = refused.select("_at", pl.lit(CHOICES_RULE).alias("rule"), "reason", "evidence")
    return replaced(work, changes), rewritten.select("_at", "evidence"), verdict.cast(VERDICT)
