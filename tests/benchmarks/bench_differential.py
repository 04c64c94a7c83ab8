"""Programs that others wrote, run bare and in every box, at a load of one and of sixteen: whose verdict differs.

    python tests/benchmarks/bench_differential.py [--data FOLDER] [--packages FOLDER] [--every 1] [--loads 1 16]

``--data``: a folder with HumanEval, HumanEval-X and MBPP as JSON lines; ``--packages``: Kattis packages, whose every
submission (accepted or not) runs on the smallest input. ``--every 3``: one program in three. A program that does
not end outside is counted and left out; one that differs is run outside once more, and it is told if that differs too.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import tempfile
import time
from pathlib import Path

from curation.verify.programs.extraction import CodeLang
from curation.verify.programs.tools import Runner
from curation.verify.sandbox.doctor import working_rungs
from tests.curation.verify.programs.differential import Bare, Seen, differences, load
from tests.curation.verify.programs.foreign_styles import Style, of_data_sets, of_packages


def _truth(styles: dict[str, Style], folder: Path) -> dict[str, tuple[Style, Seen]]:
    """Return what becomes of each program outside, of those that end in time."""
    truth: dict[str, tuple[Style, Seen]] = {}
    bare = Bare(folder)
    for name, style in styles.items():
        with contextlib.suppress(subprocess.TimeoutExpired):
            truth[name] = style, bare.run(style)
    print(f"{len(truth)} programs, {len(styles) - len(truth)} that do not end left out", flush=True)
    return truth


def _is_itself(style: Style, seen: Seen) -> bool:
    """Return whether a program does the same once more outside."""
    with tempfile.TemporaryDirectory() as folder:
        return Bare(Path(folder)).run(style) == seen


def main() -> None:
    """Read the command line, run everything, and print each difference and the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--packages", type=Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--loads", type=int, nargs="*", default=[1, 16])
    args = parser.parse_args()
    styles = of_data_sets(args.data) if args.data else {}
    styles |= dict(of_packages(args.packages)) if args.packages else {}
    styles = dict(list(styles.items())[:: args.every])
    with tempfile.TemporaryDirectory() as folder:
        truth = _truth(styles, Path(folder))
    counts = {lang.value: sum(style.lang is lang for style, _ in truth.values()) for lang in CodeLang}
    print(counts, {verdict: sum(seen[0] == verdict for _, seen in truth.values()) for verdict in ("AC", "RTE", "CE")})
    for rung in working_rungs():
        with Runner(1, rung=rung) as runner:
            for count in args.loads:
                start = time.monotonic()
                with load(count):
                    differ = differences(runner, truth)
                print(f"{rung}, load {count}: {len(differ)} of {len(truth)} differ, {time.monotonic() - start:.0f} s")
                for name, words in differ.items():
                    told = "" if _is_itself(*truth[name]) else "(not the same twice outside either)"
                    print("   ", name, *words, told, flush=True)


if __name__ == "__main__":
    main()
