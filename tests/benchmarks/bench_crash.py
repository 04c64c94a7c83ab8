"""kill -9 of the flow's process in each of its phases, everything live: does it end in the same bytes?

The gates `flows/crash-*` measure it. The recipe is the whole at toy size: filters, stage 1 with the embedded model
by torch, the grader trained on what stage 1 keeps, stage 2 with the grader, the card; then a refresh with another
checkpoint. It runs once undisturbed. In another folder the same two commands are killed in one phase after the other,
each time started again, and at last left alone. What was finished before a kill must be there untouched after it, and
the end must be the undisturbed run's: the published folder and all decisions, byte by byte.

The grader is trained with staleness 0, for only then is training itself the same twice
(`training.engines.embedded.loop`).
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Split, generate_exercises

ROOT = Path(__file__).parents[2]
MOST_S = 900.0
"""Seconds until a phase must have come."""

Ready = Callable[[Path], bool]

RECIPE = """
name = "crash"
shard_rows = 8
workers = 1
[[sources]]
name = "sums"
kind = "jsonl"
path = "problems.jsonl"
license = "Apache-2.0"
columns = {{ statement = "problem", answer = "answer", lang = "lang" }}
[near_dedup]
enabled = false
[stage1]
model = "student"
band = {{ attempts = 8 }}
[models.student]
kind = "torch"
model = {model}
prompt = "plain"
decoding = {{ temperature = 1.0, max_tokens = 112 }}
"""

GRADER = """
[grader]
recipe = "grader.toml"
band = { attempts = 8 }
"""

SMALLER = {
    r"steps = 24": "steps = 3",
    r"n_async = \d+": "n_async = 32",
    r"n_batch = \d+": "n_batch = 32",
    r"max_staleness = \d+": "max_staleness = 0",
    r"every = 8": "every = 1",
}
"""What is changed in the recipe of the demo's grader, which is written next to the recipe."""


def write_recipe(folder: Path, problems: int = 24, *, grader: bool = True) -> Path:
    """Write the recipe and its problems."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = islice(generate_exercises(31, Split.TRAIN), problems)
    rows = (
        {"problem": exercise.statement, "answer": str(exercise.answer), "lang": exercise.lang} for exercise in drawn
    )
    (folder / "problems.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if grader:
        training = (ROOT / "flows" / "recipes" / "train_demo_grader.toml").read_text()
        for setting, value in SMALLER.items():
            training, count = re.subn(rf"(?m)^{setting}$", value, training)
            assert count == 1, setting
        (folder / "grader.toml").write_text(training)
    text = RECIPE.format(model=json.dumps(str(WEIGHTS.resolve()))) + (GRADER if grader else "")
    (folder / "recipe.toml").write_text(text)
    return folder / "recipe.toml"


def there(pattern: str) -> Ready:
    """Return the condition that a file which is not empty matches the pattern."""
    return lambda folder: any(path.stat().st_size for path in folder.glob(pattern))


def journal(number: int) -> Ready:
    """Return the condition that the ``number``-th policy has answered, and not yet for a whole shard."""

    def ready(folder: Path) -> bool:
        stores = [path for path in folder.glob("attempts/*/journal.jsonl") if path.stat().st_size]
        return len(list(folder.glob("attempts/*/key.json"))) == number and bool(stores)

    return ready


RUN: Mapping[str, Ready] = {
    "reading sources": there("stages/01-sources/shards/00000.json"),
    "format filter": there("stages/02-statements/shards/00000.json"),
    "reference check": there("stages/04-references/shards/00000.json"),
    "exact_dedup": there("stages/05-exact-dedup/shards/00000.json"),
    "stage 1: sampling its first shard": journal(1),
    "stage 1: sampling": there("verdicts/stage1/*/shards/00000.json"),
    "stage 1: all sampled": there("verdicts/stage1/*/DONE.json"),
    "stage 1: decisions": there("decisions/stage1/*/shards/00000.json"),
    "grader: its first attempts": there("grader/training/attempts.jsonl"),
    "grader: after a checkpoint": there("grader/training/checkpoints/step-00000001/DONE.json"),
    "grader: the model written": there("grader/training/model/DONE.json"),
    "stage 2: sampling its first shard": journal(2),
    "stage 2: sampling": there("verdicts/stage2/*/shards/00000.json"),
    "stage 2: all sampled": there("verdicts/stage2/*/DONE.json"),
    "stage 2: decisions": there("decisions/stage2/*/shards/00000.json"),
    "export": there("stages/10-export/shards/00000.json"),
    "card": there(".aside-curated/README.md"),
}

REFRESH: Mapping[str, Ready] = {
    "refresh: choosing": there("versions/0002/chosen/shards/00000.json"),
    "refresh: sampling its first shard": journal(3),
    "refresh: sampling": there("versions/0002/attempts/*/shards/00000.json"),
    "refresh: all sampled": there("versions/0002/attempts/*/DONE.json"),
    "refresh: the version settled": there("versions/0002/about.json"),
    "refresh: card": there(".aside-curated/README.md"),
}

PARTS: Mapping[str, Mapping[str, Ready]] = {"run": RUN, "refresh": REFRESH}


def commands(recipe: Path, folder: Path) -> tuple[list[str], list[str]]:
    """Return the run, and its refresh with another checkpoint of the grader's training, which nobody has sampled yet.

    The embedded model would not do: stage 1 sampled it, so its attempts are at hand and no phase of sampling comes.
    """
    goldilocks = [sys.executable, "-m", "flows.cli"]
    run = [*goldilocks, "run", str(recipe), "--out", str(folder)]
    checkpoint = folder / "grader" / "training" / "checkpoints" / "step-00000002"
    return run, [*goldilocks, "refresh", str(folder), "--policy", str(checkpoint)]


def kill_at(command: Sequence[str], folder: Path, ready: Ready) -> bool:
    """Start the command and kill -9 it as soon as the phase is reached; False where it was passed already.

    Raises:
        RuntimeError: the command ended, or the time ran out, before the phase came.
    """
    if ready(folder):
        return False
    with (folder.parent / "killed.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        end = time.monotonic() + MOST_S
        while not ready(folder):
            if process.poll() is not None or time.monotonic() > end:
                process.kill()
                raise RuntimeError(f"the phase did not come (status {process.poll()}); see {log.name}")
            time.sleep(0.0005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    return True


def finish(command: Sequence[str], log: Path) -> None:
    """Run the command to its end."""
    with log.open("ab") as out:
        subprocess.run(command, cwd=ROOT, check=True, stdout=out, stderr=out)


def finished_files(folder: Path) -> dict[Path, tuple[int, int]]:
    """Return the files of marked shards as (inode, time of the last change): a file written again has others."""
    files: dict[Path, tuple[int, int]] = {}
    for mark in folder.rglob("shards/[0-9]*.json"):  # not one that was being written
        for file in (mark, *mark.parents[1].glob(f"*/{mark.stem}.parquet")):
            stat = file.stat()
            files[file] = (stat.st_ino, stat.st_mtime_ns)
    return files


def result(folder: Path) -> dict[str, bytes]:
    """Return the published folder and all decisions."""
    files = [*folder.glob("curated/**/*"), *folder.glob("decisions/**/*.parquet"), *folder.glob("versions/*/*.parquet")]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files if file.is_file()}


def differing(first: Mapping[str, bytes], other: Mapping[str, bytes]) -> list[str]:
    return sorted(name for name in first.keys() | other.keys() if first.get(name) != other.get(name))


@dataclass(frozen=True, slots=True)
class Sweep:
    """What became of a command that was killed in each of its phases."""

    killed: Mapping[str, int]
    """By phase in which it was killed: how many files were finished then."""
    remade: Sequence[str]
    """Files that were finished before a kill and made again after it."""
    differing: Sequence[str]
    """Published files and decisions whose bytes are not those of the undisturbed run."""
    files: int


def sweep(command: Sequence[str], phases: Mapping[str, Ready], quiet: Path, killed: Path) -> Sweep:
    """Kill the command in every phase, and let it end."""
    finished: dict[Path, tuple[int, int]] = {}
    counts: dict[str, int] = {}
    for name, ready in phases.items():
        if kill_at(command, killed, ready):
            finished |= finished_files(killed)
            counts[name] = len(finished)
    finish(command, killed.parent / "killed.log")
    after, calm, harried = finished_files(killed), result(quiet), result(killed)
    remade = sorted(str(path.relative_to(killed)) for path, stamp in finished.items() if after.get(path) != stamp)
    return Sweep(counts, remade, differing(calm, harried), len(calm.keys() | harried.keys()))


def sweeps(folder: Path) -> Iterator[tuple[str, Sweep]]:
    """Yield each part of the whole, run once undisturbed and once killed in every phase."""
    recipe = write_recipe(folder / "inputs")
    quiet, killed = folder / "quiet" / "run", folder / "killed" / "run"
    for path in (quiet, killed):
        path.mkdir(parents=True, exist_ok=True)
    for part, calm, harried in zip(PARTS, commands(recipe, quiet), commands(recipe, killed), strict=True):
        finish(calm, folder / "quiet.log")
        yield part, sweep(harried, PARTS[part], quiet, killed)
