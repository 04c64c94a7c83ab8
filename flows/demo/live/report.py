"""Reports the live demo, and what the second stage gained."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl
from rich.console import Console

from curation.publish.cards.facts import compare_stages, comparison_of
from curation.publish.cards.words import by_reason
from curation.records import DropReason

HERE = Path(__file__).parent
RECIPE = HERE.parent.parent / "recipes" / "demo_loop.toml"


def show(run: Path, console: Console) -> None:
    """Print the report of a finished run, and refresh its set."""
    first, second = (decisions_of(run, part) for part in ("stage1", "stage2"))
    print_line = partial(console.print, highlight=False, soft_wrap=True)
    print_line("Sampled live: the embedded model, then the grader trained on what it can learn from.")
    for name, decided in (("stage 1", first), ("stage 2", second)):
        attempts, all_attempts = decided["attempts"].sum(), 16 * decided.height
        print_line(f"  {name}: {attempts:,} of {all_attempts:,} attempts settled {decided.height} problems")
        print_line("    pass rate   " + _histogram(decided["pass_rate"].drop_nulls().to_list()))
        print_line("    " + _label_text(run, decided))
    _print_rescued(run, first, second, print_line)
    refresh(run, console)


def _print_rescued(run: Path, first: pl.DataFrame, second: pl.DataFrame, print_line: Callable[[str], None]) -> None:
    published = pl.read_parquet(run / "curated" / "data" / "*.parquet")["id"]
    two, wrong = comparison_of(compare_stages(first, second, published)), _planted_ids(run)
    never = set(first.filter(pl.col("reason") == DropReason.NEVER_SOLVED.value)["problem"])
    sound = (never & set(published)) - wrong
    print_line(
        f"  stage 1 never solved {two.never_solved} problems, {len(never & wrong)} of them with a wrong reference. "
        f"The two-stage set keeps {two.rescued} of them, {len(sound)} with a sound reference; "
        f"stage 2 dropped the others: {by_reason(two.dropped)}."
    )
    print_line(
        f"  stage 1 alone would have kept {two.alone} problems, {two.both} of which the two-stage set has too; "
        f"it would have lost {sum(two.lost.values())} of this set's {published.len()}: {by_reason(two.lost)}."
    )


def refresh(run: Path, console: Console) -> None:
    """Train the grader further, and refresh the set with it."""
    from flows.cli.refresh import refresh_run  # brings Prefect along
    from flows.run.training import start_from, train

    run = run.absolute()
    newer, recipe = run / "newer", RECIPE.parent / "train_demo_grader.toml"
    data = f'data={{ kind = "curated", folders = [{json.dumps(str(run / "curated"))}] }}'
    model = start_from(recipe, run / "grader" / "training" / "model")
    console.print("\nA newer checkpoint, and the set refreshed with it:", highlight=False)
    if not (newer / "model").is_dir():
        train(recipe, newer, ["steps=6", "name=train-demo-newer", model, data])
    refresh_run(run, newer / "model", newer / "attempts.jsonl")


def decisions_of(run: Path, part: str) -> pl.DataFrame:
    """Return a stage's decisions, one row per problem."""
    return pl.read_parquet(run / "decisions" / part / "*" / "decisions" / "*.parquet")


def _histogram(rates: list[float]) -> str:
    bins = [0] * 5
    for rate in rates:
        bins[min(4, int(rate * 5))] += 1
    edges = ("0–.2", ".2–.4", ".4–.6", ".6–.8", ".8–1")
    return "  ".join(f"{edge}: {count}" for edge, count in zip(edges, bins, strict=True))


def _label_text(run: Path, decided: pl.DataFrame) -> str:
    planted = _planted_ids(run)
    suspected = set(decided.filter(pl.col("reason") == DropReason.SUSPECTED_WRONG_LABEL.value)["problem"])
    right = len(suspected & planted)
    return f"{len(planted)} wrong references planted: {right} found, {len(suspected) - right} sound ones suspected"


def _planted_ids(run: Path) -> set[str]:
    lines = (HERE / "planted.jsonl").read_text(encoding="utf-8").splitlines()
    planted = [json.loads(line)["problem"] for line in lines]
    published = [pl.read_parquet(run / "curated" / part / "*.parquet") for part in ("data", "dropped")]
    statements = pl.concat([frame.select("id", "statement") for frame in published])
    return set(statements.filter(pl.col("statement").is_in(planted))["id"])
