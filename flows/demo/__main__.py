"""`make demo`: the math line on the project's own sample data, and what it caught of what was planted there."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
from rich.console import Console

from curation.records import GoldilocksError
from flows.commands import run_recipe
from flows.demo.report import show

HERE = Path(__file__).parent
RECIPE = HERE.parent / "recipes" / "demo_math.toml"


def fates(curated: Path) -> pl.DataFrame:
    """What became of each row of the sources, from the published folder."""
    columns = ["source", "row", "raw_statement", "raw_answer", "statement"]
    kept = pl.read_parquet(curated / "data" / "*.parquet").select(
        *columns, pl.lit("export").alias("stage"), pl.lit(None, pl.String).alias("reason")
    )
    dropped = pl.read_parquet(curated / "dropped" / "*.parquet").select(*columns, "stage", "reason")
    return pl.concat([kept, dropped]).select(
        "source",
        "row",
        pl.coalesce("raw_statement", "statement").alias("statement"),
        "stage",
        "reason",
        pl.any_horizontal(pl.col("raw_statement", "raw_answer").is_not_null()).alias("rewritten"),
    )


def main(out: Path) -> None:
    """Run the demo recipe into ``out`` and print the report."""
    curated = run_recipe(RECIPE, [], out)
    assert curated is not None
    console = Console()
    console.print()
    show(HERE / "planted.jsonl", fates(curated), console)
    console.print(f"\nThe data card: {curated / 'README.md'}", soft_wrap=True, highlight=False)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/demo-math"))
    except GoldilocksError as error:
        sys.exit(f"goldilocks: {error}")
