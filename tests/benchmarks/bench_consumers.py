"""Rewards of real attempts by other trainers' own loaders and calls, compared with a run's verdicts.

    .venv/bin/python -m tests.benchmarks.bench_consumers DATA/attempts [--responses 300] [--only verl --only trl]

Trainers are tried where `tests.consumers.environments` has laid them; one process each, inside their environment.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from curation.publish.export_formats import export_set
from tests.benchmarks.bench_exports import Sampled, agreement, read, verdicts, write_set
from tests.consumers.environments import TRAINERS, environment_of, missing, python_of

LIMIT_S = 1200
"""Of one trainer."""


def rewards_inside(name: str, export: Path, responses: Sequence[tuple[str, str]], scratch: Path) -> list[float]:
    """Return the rewards of (problem, response) pairs by a trainer's own call.

    Raises:
        RuntimeError: its process failed; the text is the end of what it said.
    """
    asked, told = scratch / f"{name}.jsonl", scratch / f"{name}.json"
    asked.write_text("\n".join(json.dumps({"id": problem, "text": text}) for problem, text in responses))
    command = [python_of(name), "-m", "tests.consumers.inside", name, str(export), str(asked), str(told)]
    done = subprocess.run(
        command, env=environment_of(name), cwd=scratch, capture_output=True, text=True, timeout=LIMIT_S
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr[-3000:]}")
    rewards: list[float] = json.loads(told.read_text())
    return rewards


def bench(rows: Sequence[Sampled], names: Sequence[str], scratch: Path) -> None:
    said = verdicts(rows)
    curated = write_set(scratch / "curated", rows)
    print(f"  {'trainer':<34}{'agrees':>10}{'lost':>10}{'given':>10}{'seconds':>12}")
    for name in names:
        if why := missing(name):
            print(f"  {name:<34}{why}")
            continue
        begun = time.perf_counter()
        export = export_set(curated, name, scratch / name).file.parent
        try:
            rewards = rewards_inside(name, export, [(row.problem, row.text) for row in rows], scratch)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"  {name:<34}{str(error).strip()[-1500:]}")
            continue
        print(agreement(name, rewards, said, time.perf_counter() - begun), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--responses", type=int, default=300, help="of each file")
    parser.add_argument("--only", action="append", help="this trainer; several times for several")
    options = parser.parse_args(arguments)
    names = options.only or [name for name in TRAINERS if name != "skyrl-gym"]
    for path in sorted(options.folder.glob("*.jsonl")):
        if rows := read(path, options.responses):
            print(f"{path.name}: {len(rows):,} responses to {len({row.problem for row in rows}):,} problems")
            with tempfile.TemporaryDirectory() as scratch:
                bench(rows, names, Path(scratch))
    return 0


if __name__ == "__main__":
    sys.exit(main())
