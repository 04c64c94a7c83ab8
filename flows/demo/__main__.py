"""`make demo`: runs the pipelines on sample data and reports planted defects.

``python -m flows.demo math``, ``code`` or ``loop`` runs one part.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
from rich.console import Console

from curation.records import ConfigError, GoldilocksError
from flows.cli.commands import run_recipe
from flows.demo.report import RECIPES, show_code, show_loop, show_math
from flows.run.terminal import SafeConsole

PARTS: dict[str, Callable[[Path, Console], None]] = {
    "math": show_math,
    "code": show_code,
    "loop": show_loop,
}
"""What reports on each part's run."""


NEXT = """
Shown: planted defects in math and code sets, found or not; a grader trained between two stages; a set that a newer
checkpoint refreshed. Next:

  {goldilocks} page runs                           these runs in a browser
  {goldilocks} explain runs/demo-math {dropped}     why this row was dropped
  {goldilocks} init problems.jsonl                 a recipe for a file of your own (docs/how-to/own-problems.md)
"""
"""The last screen."""


def main(names: Sequence[str]) -> None:
    """Run the named parts, by default all, the code part in a process of its own."""
    console = SafeConsole(highlight=True, markup=True, soft_wrap=False)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise ConfigError(f"the demo has no part `{unknown[0]}`; it has: {', '.join(PARTS)}.")
    if names:
        for name in names:
            _run(name, console)
        return
    command = [sys.executable, "-m", "flows.demo", "code"]
    with tempfile.TemporaryFile("w+") as log:
        apart = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        console.print("demo-code runs meanwhile; its report comes after the others")
        try:
            for name in ("math", "loop"):
                _run(name, console)
            status = apart.wait()
        finally:
            apart.kill()
        log.seek(0)
        print(log.read())
    if status:
        sys.exit(status)
    dropped = pl.read_parquet(Path("runs") / "demo-math" / "curated" / "dropped" / "*.parquet", n_rows=1)["id"][0]
    goldilocks = os.path.relpath(Path(sys.executable).parent / "goldilocks")
    print(NEXT.format(goldilocks=goldilocks, dropped=dropped[:8]))


def _run(name: str, console: Console) -> None:
    console.rule(f"demo-{name}")
    run = Path("runs") / f"demo-{name}"
    run_recipe(RECIPES / f"demo_{name}.toml", [], run)
    console.print()
    PARTS[name](run, console)
    console.print(f"\nThe data card: {run / 'curated' / 'README.md'}", soft_wrap=True, highlight=False)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except GoldilocksError as error:
        sys.exit(f"goldilocks: {error}")
