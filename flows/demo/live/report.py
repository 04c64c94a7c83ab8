"""Reports the live demo, what the second stage gained, and a refresh with a grader that was trained further."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from pathlib import Path

import polars as pl
from rich.console import Console

from curation.publish.cards.facts import compare_stages
from curation.publish.words import by_reason
from curation.records import DropReason
from flows.cli.commands import refresh_run
from flows.run.training import start_from, train

HERE = Path(__file__).parent
RECIPE = HERE.parent.parent / "recipes" / "demo_loop.toml"


def show(run: Path, console: Console) -> None:
    """Print the report of a finished run, and refresh its set."""
    print_line = partial(console.print, highlight=False, soft_wrap=True)
    lines = (HERE / "planted.jsonl").read_text(encoding="utf-8").splitlines()
    planted = [json.loads(line)["problem"] for line in lines]
    tables = (pl.read_parquet(run / "curated" / part / "*.parquet") for part in ("data", "dropped"))
    statements = pl.concat([table.select("id", "statement") for table in tables])
    wrong = set(statements.filter(pl.col("statement").is_in(planted))["id"])
    first, second = (
        pl.read_parquet(run / "decisions" / part / "*" / "decisions" / "*.parquet") for part in ("stage1", "stage2")
    )
    print_line("Sampled live: the embedded model, then the grader trained on what it can learn from.")
    for name, decided in (("stage 1", first), ("stage 2", second)):
        attempts, all_attempts = decided["attempts"].sum(), 16 * decided.height
        print_line(f"  {name}: {attempts:,} of {all_attempts:,} attempts settled {decided.height} problems")
        bins = Counter(min(4, int(rate * 5)) for rate in decided["pass_rate"].drop_nulls())
        edges = ("0–.2", ".2–.4", ".4–.6", ".6–.8", ".8–1")
        print_line("    pass rate   " + "  ".join(f"{edge}: {bins[number]}" for number, edge in enumerate(edges)))
        suspected = set(decided.filter(pl.col("reason") == DropReason.SUSPECTED_WRONG_LABEL.value)["problem"])
        right = len(suspected & wrong)
        found = f"{right} found, {len(suspected) - right} sound ones suspected"
        print_line(f"    {len(wrong)} wrong references planted: {found}")
    published = pl.read_parquet(run / "curated" / "data" / "*.parquet")["id"]
    two = compare_stages([(first, second, published)])
    never = set(first.filter(pl.col("reason") == DropReason.NEVER_SOLVED.value)["problem"])
    print_line(
        f"  stage 1 never solved {two.never_solved} problems, {len(never & wrong)} of them with a wrong reference. "
        f"The two-stage set keeps {two.rescued} of them, {len((never & set(published)) - wrong)} with a sound "
        f"reference; stage 2 dropped the others: {by_reason(two.dropped)}."
    )
    print_line(
        f"  stage 1 alone would have kept {two.alone} problems, {two.both} of which the two-stage set has too; "
        f"it would have lost {sum(two.lost.values())} of this set's {published.len()}: {by_reason(two.lost)}."
    )
    print_line("\nA newer checkpoint, and the set refreshed with it:")
    run = run.absolute()
    newer, recipe = run / "newer", RECIPE.parent / "train_demo_grader.toml"
    if not (newer / "model").is_dir():
        data = f'data={{ kind = "curated", folders = [{json.dumps(str(run / "curated"))}] }}'
        model = start_from(recipe, run / "grader" / "training" / "model")
        train(recipe, newer, ["steps=6", "name=train-demo-newer", model, data])
    refresh_run(run, newer / "model", newer / "attempts.jsonl")
