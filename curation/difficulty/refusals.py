"""Problems at which sampling was refused: no decision is made on them, whatever their other attempts say.

A refusal is no wrong answer, and attempts that were refused are no random ones (a content filter looks at what is
said), so the pass rate of the others says nothing safe. The problem is set aside as ``sampling_failed``, with who
refused it and why, until a later run has all its attempts.
"""

from __future__ import annotations

import polars as pl

from curation.records import DECISION, DropReason


def hold_refused(decisions: pl.DataFrame, refusals: pl.DataFrame) -> pl.DataFrame:
    """Return `DECISION` rows in their order, in which refused problems are dropped as sampling_failed.

    Args:
        refusals: `curation.storage.attempts.REFUSAL` rows; the first of each problem is told.
    """
    evidence = pl.format("attempt {} was refused ({}): {}", "index", "kind", "reason")
    told = refusals.sort("index").unique("problem", keep="first").select("problem", told=evidence)
    held = decisions.join(told, on="problem", how="left", maintain_order="left")
    is_refused = pl.col("told").is_not_null()
    return held.with_columns(
        pl.when(is_refused).then(False).otherwise("keep").alias("keep"),
        pl.when(is_refused).then(pl.lit(DropReason.SAMPLING_FAILED.value)).otherwise("reason").alias("reason"),
        pl.when(is_refused).then("told").otherwise("evidence").alias("evidence"),
    ).select(DECISION.names())
