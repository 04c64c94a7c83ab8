"""What does the second stage keep that the first loses? Counts over problems whose right answers are known.

    .venv/bin/python -m tests.benchmarks.bench_stages FOLDER [--seeds 1 2 3] [--problems 400] [--harder 0] [--wrong 30]

For each seed the embedded family's problems are drawn as in the demo (``--harder`` of them of levels 3 and 4 alone,
the references of ``--wrong`` changed) and `flows/recipes/demo_loop.toml` curates them with the torch generator: stage 1
with the embedded model, the grader trained on what it keeps, stage 2. ``--set`` changes the recipe, ``--train`` the
grader's. ``--draw 2026`` draws the demo's own problems for every seed, so that only the grader's seed differs. A run
that is finished in FOLDER is not done again.

*Sound* means that the reference is the right answer. ``one stage`` is the set that stage 1 alone would have kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import tomli_w

from curation.config.loading import read_toml, set_value
from curation.publish.cards import compare_stages
from curation.records import DropReason, problem_id
from flows.cli.commands import run_recipe
from flows.demo.live.report import RECIPE, decisions_of
from tests.demo_data.live.make_data import Drawn, rows, write

COLUMNS = (
    "seed", "never solved by stage 1", "(wrong)", "kept by two stages", "(sound)", "one stage: kept", "(wrong)",
    "two stages: kept", "(wrong)", "of it lost by one stage",
    "suspected by stage 1", "(right)", "by stage 2", "(right)",
)  # fmt: skip


def counts(run: Path, wrong: set[str]) -> list[int]:
    """Return a row of the table: what the two stages of a finished run decided, against what is known to be wrong."""
    first, second = (decisions_of(run, part) for part in ("stage1", "stage2"))
    published = pl.read_parquet(run / "curated" / "data" / "*.parquet")["id"]
    two = compare_stages(first, second, published)

    def of(decided: pl.DataFrame, reason: DropReason) -> set[str]:
        return set(decided.filter(pl.col("reason") == reason.value)["problem"])

    never, published_ids, alone = (
        of(first, DropReason.NEVER_SOLVED),
        set(published),
        set(first.filter("keep")["problem"]),
    )
    suspected = [of(decided, DropReason.SUSPECTED_WRONG_LABEL) for decided in (first, second)]
    return [
        *(len(never), len(never & wrong), two.rescued, len(never & published_ids - wrong)),
        *(len(alone), len(alone & wrong), len(published_ids), len(published_ids & wrong), sum(two.lost.values())),
        *(count for suspects in suspected for count in (len(suspects), len(suspects & wrong))),
    ]


def _grader(folder: Path, changes: Sequence[str]) -> Path:
    """Write the demo's recipe of a grader with these changes, and return its path."""
    shipped = RECIPE.with_name("train_demo_grader.toml")
    table = read_toml(shipped, f"recipe {shipped}")
    for change in changes:
        set_value(table, change)
    (folder / "grader.toml").write_text(tomli_w.dumps(table))
    return folder / "grader.toml"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options.add_argument("--problems", type=int, default=400)
    options.add_argument("--harder", type=int, default=0)
    options.add_argument("--wrong", type=int, default=30)
    options.add_argument("--draw", type=int, help="the seed of the problems; 1000 + the seed where absent")
    options.add_argument("--train", action="append", default=[], help="KEY=VALUE of the grader's training")
    options.add_argument("--set", action="append", default=[], help="KEY=VALUE of the recipe")
    parsed = options.parse_args()
    table = []
    for seed in parsed.seeds:
        folder = parsed.folder.absolute() / f"seed-{seed}"
        problems, planted = rows(
            Drawn(parsed.draw or 1000 + seed, parsed.problems - parsed.harder, parsed.harder, parsed.wrong)
        )
        write(folder, problems, planted)
        if not (folder / "run" / "curated").exists():
            changes = [
                f"sources.0.path={folder / 'problems.jsonl'}",
                f"grader.recipe={_grader(folder, [f'seed={seed}', *parsed.train])}",
                *parsed.set,
            ]
            run_recipe(RECIPE, changes, folder / "run")
        table.append(
            [seed, *counts(folder / "run", {problem_id(str(problem_row["problem"])) for problem_row in planted})]
        )
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    for line in table:
        print("| " + " | ".join(map(str, line)) + " |")


if __name__ == "__main__":
    main()
