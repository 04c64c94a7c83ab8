"""`goldilocks review --audit N`: rows of the set drawn with known probabilities, and what verdicts on them tell.

The draw lies in DIR/audit.json with the references as they were; the same command goes on with it as long as the set's
version is the same, and prints the share of wrong labels once every stratum has a verdict. Another N, or another
version of the set, draws anew. A rejected problem counts as one whose label is wrong.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl
from rich.console import Console

from curation.publish.audit import draw_audit, estimate_audit
from curation.records import ConfigError, StoreError
from curation.storage.locks import lock_folder
from curation.storage.stages import atomic_write
from flows.pipelines.find_problem import filters_of
from flows.publish.audits import FILE, Audit, as_audit, read_audit
from flows.publish.curated_set import published_verifier, published_version
from flows.publish.versions import newest_run
from flows.run.pipeline import read_results
from flows.run.run_folder import Run, verdicts_of_people
from flows.stages.label_trust import label_shards

SHOWN = 20
"""Rows that are printed; all of them lie in the file."""


def audit_run(run: Run, size: int, console: Console) -> None:
    """Print the rows of an audit that wait for a verdict, and the share of wrong labels that the others tell.

    Raises:
        ConfigError: the run has no references to audit. StoreError: it is not finished.
    """
    if run.recipe.flow != "curate-math":
        raise ConfigError("--audit: programs are judged by tests; only a set of `curate-math` has references.")
    if size < 1:
        raise ConfigError(f"--audit {size}: draw at least one row.")
    with lock_folder(run.folder):
        audit = _current_audit(run, size) or _draw(run, size)
    told = audit.told(verdicts_of_people(run))
    waiting = [name for stratum in audit.strata for name in stratum.drawn if name not in told]
    for name in waiting[:SHOWN]:
        statement, reference = audit.rows[name]
        console.print(f"{name}  reference {reference}")
        console.print(f"  statement   {' '.join(statement.split())}")
    if len(waiting) > SHOWN:
        console.print(f"… and {len(waiting) - SHOWN:,} more: {run.folder / FILE}")
    _print_estimate(console, run, audit, told, len(waiting))


def _print_estimate(console: Console, run: Run, audit: Audit, told: dict[str, bool], waiting: int) -> None:
    problems = sum(stratum.size for stratum in audit.strata)
    console.print(
        f"{len(told):,} of {len(audit.rows):,} drawn rows judged; {waiting:,} wait for `goldilocks review {run.folder} "
        "--accept ID --answer REFERENCE` or `--reject ID`"
    )
    estimate = estimate_audit(audit.strata, told)
    if estimate is None:
        console.print("no share yet: each stratum of the draw needs at least one verdict")
        return
    console.print(
        f"wrong labels in the set of {problems:,}: {estimate.share:.2%}, 95 % interval {estimate.low:.2%} to "
        f"{estimate.high:.2%} ({estimate.wrong:,} of {estimate.judged:,} verdicts)"
    )


def _draw(run: Run, size: int) -> Audit:
    """Draw rows of the published set, and write them down."""
    verifier, files = published_verifier(run), sorted((run.folder / "curated" / "data").glob("*.parquet"))
    if verifier is None or not files:
        raise StoreError(f"{run.folder} holds no finished run yet; finish it with `goldilocks run`.")
    rows = pl.scan_parquet(files, glob=False).select("id", "statement", "answer")
    results = read_results(run, filters_of(run))
    with label_shards(newest_run(run.folder), results, verifier) as shards:
        parts = [shards.read(index).select("problem", "wrong_label") for index in range(shards.count)]
    names = rows.select(problem="id").collect()
    strata = draw_audit(
        names.join(pl.concat(parts), on="problem", how="left", maintain_order="left"), size, run.recipe.seed
    )
    drawn = [name for stratum in strata for name in stratum.drawn]
    texts = {
        name: (statement, answer) for name, statement, answer in rows.filter(pl.col("id").is_in(drawn)).collect().rows()
    }
    table: dict[str, Any] = {
        "size": size,
        "version": published_version(run),
        "strata": [{"size": stratum.size, "drawn": list(stratum.drawn)} for stratum in strata],
        "rows": {name: {"statement": texts[name][0], "reference": texts[name][1]} for name in drawn},
    }
    atomic_write(run.folder / FILE, json.dumps(table, indent=1, ensure_ascii=False) + "\n")
    return as_audit(table)


def _current_audit(run: Run, size: int) -> Audit | None:
    """Return the draw that is there; None where there is none of this size from this version of the set."""
    audit = read_audit(run.folder)
    return audit if audit is not None and (audit.size, audit.version) == (size, published_version(run)) else None
