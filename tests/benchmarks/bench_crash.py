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
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import psutil

from tests.places import ROOT
from tests.waiting import wait_gone, wait_until
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Split, generate_exercises

Ready = Callable[[Path], bool]

RECIPE = Path(__file__).with_name("crash.toml").read_text(encoding="utf-8")

GRADER = '\n[grader]\nrecipe = "grader.toml"\nband = { attempts = 8 }\n'

SMALLER = {
    r"steps = 24": "steps = 3",
    r"n_async = \d+": "n_async = 32",
    r"n_batch = \d+": "n_batch = 32",
    r"max_staleness = \d+": "max_staleness = 0",
    r"every = 8": "every = 1",
}
"""What is changed in the recipe of the demo's grader, which is written next to the recipe."""


def write_recipe(folder: Path, problems: int = 24, *, grader: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    drawn = islice(generate_exercises(31, Split.TRAIN), problems)
    rows = [{"problem": one.statement, "answer": str(one.answer), "lang": one.lang} for one in drawn]
    (folder / "problems.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if grader:
        training = (ROOT / "flows" / "recipes" / "train_demo_grader.toml").read_text()
        for setting, value in SMALLER.items():
            training, count = re.subn(rf"(?m)^{setting}$", value, training)
            assert count == 1, setting
        (folder / "grader.toml").write_text(training)
    text = RECIPE.replace("WEIGHTS", str(WEIGHTS.resolve())) + (GRADER if grader else "")
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
    """Return the run, and its refresh with a checkpoint of the grader's training, of which no attempts are stored."""
    goldilocks = [sys.executable, "-m", "flows.cli"]
    run = [*goldilocks, "run", str(recipe), "--out", str(folder)]
    checkpoint = folder / "grader" / "training" / "checkpoints" / "step-00000002"
    return run, [*goldilocks, "refresh", str(folder), "--policy", str(checkpoint)]


def kill_at(command: Sequence[str], folder: Path, ready: Ready) -> bool:
    """Start the command and kill -9 it as soon as the phase is reached; False if it was passed already."""
    if ready(folder):
        return False
    with (folder.parent / "killed.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    wait_until(lambda: ready(folder), process, tick_s=0.0005)
    process.send_signal(signal.SIGSTOP)  # it stays in the phase while its children are looked up
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    wait_gone(children)
    return True


def finish(command: Sequence[str], log: Path) -> None:
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
    files = [*folder.glob("curated/**/*"), *folder.glob("decisions/**/*.parquet"), *folder.glob("versions/*/*.parquet")]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files if file.is_file()}


@dataclass(frozen=True, slots=True)
class Sweep:
    """A command that was killed in each of its phases."""

    killed: Mapping[str, int]
    """Finished files by the phase in which it was killed."""
    remade: Sequence[str]
    """Files that were finished before a kill and made again after it."""
    differing: Sequence[str]
    """Published files and decisions whose bytes are not those of the undisturbed run."""


def sweep(command: Sequence[str], phases: Mapping[str, Ready], quiet: Path, killed: Path) -> Sweep:
    finished: dict[Path, tuple[int, int]] = {}
    counts: dict[str, int] = {}
    for name, ready in phases.items():
        if kill_at(command, killed, ready):
            finished |= finished_files(killed)
            counts[name] = len(finished)
    finish(command, killed.parent / "killed.log")
    after, calm, harried = finished_files(killed), result(quiet), result(killed)
    remade = sorted(str(path.relative_to(killed)) for path, stamp in finished.items() if after.get(path) != stamp)
    differing = sorted(name for name in calm.keys() | harried.keys() if calm.get(name) != harried.get(name))
    return Sweep(counts, remade, differing)


def sweeps(folder: Path) -> Iterator[tuple[str, Sweep]]:
    """Yield each part of the whole, run once undisturbed and once killed in every phase."""
    recipe = write_recipe(folder / "inputs")
    quiet, killed = folder / "quiet" / "run", folder / "killed" / "run"
    for path in (quiet, killed):
        path.mkdir(parents=True, exist_ok=True)
    for part, calm, harried in zip(PARTS, commands(recipe, quiet), commands(recipe, killed), strict=True):
        finish(calm, folder / "quiet.log")
        yield part, sweep(harried, PARTS[part], quiet, killed)
