"""`make demo`: runs the pipelines on sample data and reports planted defects.

``python -m flows.demo math``, ``code`` or ``loop`` runs one part.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl
from rich.console import Console

from curation.records import ConfigError, GoldilocksError
from flows.cli.commands import run_recipe
from flows.demo.code import report as code_report
from flows.demo.live import report as live
from flows.demo.report import show
from flows.run.terminal import SafeConsole
from flows.stages.export import EXPORT

HERE = Path(__file__).parent
RECIPE = HERE.parent / "recipes" / "demo_math.toml"


def row_outcomes(curated: Path) -> pl.DataFrame:
    """Return each source row's outcome, by the published folder."""
    columns = ["source", "row", "raw_statement", "raw_answer", "statement"]
    rows = pl.read_parquet(curated / "data" / "*.parquet").filter(pl.col("translation_of").is_null())
    kept = rows.select(*columns, pl.lit(EXPORT.name).alias("stage"), pl.lit(None, pl.String).alias("reason"))
    dropped = pl.read_parquet(curated / "dropped" / "*.parquet").select(*columns, "stage", "reason")
    return pl.concat([kept, dropped]).select(
        "source",
        "row",
        pl.coalesce("raw_statement", "statement").alias("statement"),
        "stage",
        "reason",
        pl.any_horizontal(pl.col("raw_statement", "raw_answer").is_not_null()).alias("rewritten"),
    )


def math(out: Path, console: Console) -> None:
    """Run the math pipeline on recorded attempts."""
    curated = run_recipe(RECIPE, [], out)
    assert curated is not None
    console.print()
    show(HERE / "planted.jsonl", row_outcomes(curated), console)
    console.print(f"\nThe data card: {curated / 'README.md'}", soft_wrap=True, highlight=False)


def loop(out: Path, console: Console) -> None:
    """Run two live stages, with a grader trained in between."""
    curated = run_recipe(live.RECIPE, [], out)
    assert curated is not None
    console.print()
    live.show(out, console)
    live.refresh(out, console)
    console.print(f"\nThe data card: {curated / 'README.md'}", soft_wrap=True, highlight=False)


def code(out: Path, console: Console) -> None:
    """Run the code pipeline on recorded attempts."""
    curated = run_recipe(code_report.RECIPE, [], out)
    assert curated is not None
    console.print()
    code_report.show(code_report.fault_reports(out, code_report.HERE / "planted.jsonl"), console)
    console.print(f"\nThe data card: {curated / 'README.md'}", soft_wrap=True, highlight=False)


PARTS = {"math": math, "code": code, "loop": loop}


def main(names: Sequence[str]) -> None:
    """Run the named parts, by default all."""
    console = SafeConsole(highlight=True, markup=True, soft_wrap=False)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise ConfigError(f"the demo has no part `{unknown[0]}`; it has: {', '.join(PARTS)}.")
    for name in names or PARTS:
        console.rule(f"demo-{name}")
        PARTS[name](Path("runs") / f"demo-{name}", console)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except GoldilocksError as error:
        sys.exit(f"goldilocks: {error}")
