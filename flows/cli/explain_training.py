"""`goldilocks explain` of a training run: its kept attempts at one problem, step by step, with their verdicts."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from curation.policies.excerpt import excerpt
from curation.records import VERDICT, StoreError
from flows.run.terminal import SafeConsole
from training.rollouts.attempt_log import attempt_tables, read_attempts, verdict_tables

_NAME = ("problem", "sampling", "index")
_SHOWN = (*_NAME, "purpose", "step", "version", "newest_version", "tokens", "finish", "text")


def explain_in_training(run: Path, beginning: str) -> None:
    """Print the attempts of a training run at the one problem whose id begins so."""
    problem = _find_id(run, beginning)
    chosen = pl.col("problem") == problem
    verdicts = pl.concat([pl.DataFrame(schema=VERDICT), *(table.filter(chosen) for table in verdict_tables(run))])
    attempts = read_attempts(run, _SHOWN, problems=[problem])
    judged = attempts.join(
        verdicts.select(*_NAME, "reference", "outcome", "answer", "method"),
        on=list(_NAME),
        how="left",
        maintain_order="left",
    )
    console = SafeConsole()
    console.print(f"{problem}: {judged.height:,} attempts; reference {excerpt(judged['reference'][0])}")
    for row in judged.iter_rows(named=True):
        versions = " to ".join(dict.fromkeys([str(row["version"]), str(row["newest_version"])]))
        answer = f" {excerpt(row['answer'], 60)}" if row["answer"] is not None else ""
        console.print(
            f"  {row['purpose']} at step {row['step']}, version {versions}, attempt {row['index']}: "
            f"{row['outcome'] or 'format'}{answer}; {row['method']}; {row['tokens']} tokens, {row['finish']}; "
            f"{excerpt(row['text'], 120)}"
        )


def _find_id(run: Path, beginning: str) -> str:
    """Return the one id among the attempted problems that begins so.

    Raises:
        StoreError: none does, or several do.
    """
    ids: set[str] = set()
    for table in attempt_tables(run, ["problem", "index"]):
        ids.update(table.filter(pl.col("problem").str.starts_with(beginning))["problem"])
    if len(ids) != 1:
        examples = f": {', '.join(sorted(ids)[:5])}; give more" if ids else ""
        raise StoreError(f"{beginning!r} begins {len(ids)} ids of attempted problems in {run}{examples}.")
    return ids.pop()
