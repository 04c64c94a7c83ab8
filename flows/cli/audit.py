"""`goldilocks review --audit N`: estimates the share of wrong labels from rows drawn with known probabilities.

The draw in DIR/audit.json is continued, unless N or the set's version differs. The estimate needs a verdict per
stratum; a rejected problem counts as a wrong label.
"""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console

from curation.difficulty.label_trust import LABEL_TRUST
from curation.publish.audit import AuditStratum, draw_places, estimate_audit
from curation.records import ConfigError, StoreError
from curation.storage.locks import lock_folder
from curation.storage.stages import atomic_write
from flows.pipelines.run_tables import filters_of
from flows.publish.audits import FILE, Audit, AuditRow, read_audit
from flows.publish.curated_set import published_verifier, published_version
from flows.publish.versions import newest_run
from flows.run.pipeline import read_results
from flows.run.run_folder import Run, verdicts_of_people
from flows.stages.decisions import label_shards

SHOWN = 20
"""Rows that are printed; the file has all."""


def audit_run(run: Run, size: int, console: Console) -> None:
    """Print the rows without a verdict, and the estimate.

    Raises:
        ConfigError: the run has no references to audit. StoreError: it is not finished.
    """
    if run.recipe.flow != "curate-math":
        raise ConfigError("--audit: programs are judged by tests; only a set of `curate-math` has references.")
    if size < 1:
        raise ConfigError(f"--audit {size}: draw at least one row.")
    with lock_folder(run.folder):
        audit = _current_audit(run, size) or _draw(run, size)
    judged = audit.wrong_labels(verdicts_of_people(run))
    waiting = [name for stratum in audit.strata for name in stratum.drawn if name not in judged]
    for name in waiting[:SHOWN]:
        row = audit.rows[name]
        console.print(f"{name}  reference {row.reference}")
        console.print(f"  statement   {' '.join(row.statement.split())}")
    if len(waiting) > SHOWN:
        console.print(f"… and {len(waiting) - SHOWN:,} more: {run.folder / FILE}")
    _print_estimate(console, run, audit, judged, len(waiting))


def _print_estimate(console: Console, run: Run, audit: Audit, judged: dict[str, bool], waiting: int) -> None:
    problems = sum(stratum.size for stratum in audit.strata)
    console.print(
        f"{len(judged):,} of {len(audit.rows):,} drawn rows judged; {waiting:,} wait for `goldilocks review "
        f"{run.folder} --accept ID --answer REFERENCE` or `--reject ID`"
    )
    estimate = estimate_audit(audit.strata, judged)
    if estimate is None:
        console.print("no share yet: each stratum of the draw needs at least one verdict")
        return
    console.print(
        f"wrong labels in the set of {problems:,}: {estimate.share:.2%}, 95 % interval {estimate.low:.2%} to "
        f"{estimate.high:.2%} ({estimate.wrong:,} of {estimate.judged:,} verdicts)"
    )


def _draw(run: Run, size: int) -> Audit:
    verifier, files = published_verifier(run), sorted((run.folder / "curated" / "data").glob("*.parquet"))
    if verifier is None or not files:
        raise StoreError(f"{run.folder} holds no finished run yet; finish it with `goldilocks run`.")
    rows = pl.scan_parquet(files, glob=False).select("statement", "answer", problem="id")
    names = rows.select("problem").collect().sort("problem")
    strata = draw_places(_chances(run, names, verifier), size, run.recipe.seed)
    drawn = tuple(AuditStratum(count, tuple(names["problem"][places].to_list())) for count, places in strata)
    meant = pl.col("problem").is_in([name for stratum in drawn for name in stratum.drawn])
    found_rows = rows.filter(meant).collect(engine="streaming").iter_rows()
    texts = {name: AuditRow(statement, answer) for statement, answer, name in found_rows}
    rows_of = {name: texts[name] for stratum in drawn for name in stratum.drawn}
    audit = Audit(size, published_version(run), drawn, rows_of)
    atomic_write(run.folder / FILE, json.dumps(asdict(audit), indent=1, ensure_ascii=False) + "\n")
    return audit


def _chances(run: Run, names: pl.DataFrame, verifier: str) -> NDArray[np.float64]:
    """Return the probabilities that the references of these problems are wrong; nan: unknown."""
    with label_shards(newest_run(run.folder), read_results(run, filters_of(run)), verifier) as shards:
        columns = ["problem", "wrong_label"]
        parts = (shards.read(index).select(columns) for index in range(shards.count))
        labels = pl.concat([LABEL_TRUST.to_frame().select(columns), *parts])
    known = names.join(labels, on="problem", how="left", maintain_order="left")
    chances: NDArray[np.float64] = known["wrong_label"].to_numpy()
    return chances


def _current_audit(run: Run, size: int) -> Audit | None:
    audit = read_audit(run.folder)
    return audit if audit is not None and (audit.size, audit.version) == (size, published_version(run)) else None
