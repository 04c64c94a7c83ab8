"""Runs that are killed, the closed loop, a service's cron, and the ready recipes.

Not here: training runs that are killed (room `training`), but for the grader's within a run.
"""

from __future__ import annotations

import contextlib
import io
import signal
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from curation.storage.locks import is_locked
from flows.cli.gpus import is_training_recipe
from flows.publish.versions import stored_versions
from tests.benchmarks import bench_long_run
from tests.benchmarks.bench_crash import PARTS, Sweep, sweeps
from tests.benchmarks.bench_service_kills import KINDS, Service, bench, victims
from tests.flows import miniature
from tests.flows.conftest import goldilocks
from tests.gates.base import Limit, Measured, gate
from tests.waiting import wait_until

ALL = sorted(miniature.RECIPES.glob("*.toml"))
CURATING = [path for path in ALL if not is_training_recipe(path)]
FROM_HUB = ("magistral_math", "magistral_code", "apps_code", "taco_code", "codeforces_code")
"""Recipes that read data sets of a hub; here miniatures of these, in their exact schemas."""


def passed(paths: Sequence[Path], work: Callable[[Path, Path], tuple[str | Path, ...]]) -> Measured:
    """Run a command for each recipe; return for how many it ended with status 0."""
    failed = []
    for path in paths:
        with TemporaryDirectory() as folder:
            done = goldilocks(*work(path, Path(folder)))
        if done.status or not done.out:
            failed.append(f"{path.stem}: {done.err.strip()[-200:]}")
    return Measured(len(paths) - len(failed), of=len(paths), note="; ".join(failed))


@gate("recipes-dry", Limit("==", 9, "recipes"))
def recipes_dry() -> Measured:
    """Count ready recipes of curation that `run --dry` accepts."""

    def command(path: Path, folder: Path) -> tuple[str | Path, ...]:
        recipe = miniature.local_recipe(path.stem, folder) if path.stem in FROM_HUB else path
        return "run", recipe, "--dry", "--out", folder / "run"

    return passed(CURATING, command)


@gate("recipes-planned", Limit("==", 18, "recipes"))
def recipes_planned() -> Measured:
    """Count ready recipes, those of training too, that `plan --stated` accepts as they are."""
    return passed(ALL, lambda path, _: ("plan", path, "--stated"))


@cache
def crashes() -> dict[str, Sweep]:
    """Return what became of a run with a grader, and of a refresh, that were killed in each phase."""
    with TemporaryDirectory() as folder:
        return dict(sweeps(Path(folder)))


def phases(part: str) -> Measured:
    """Return in how many phases a part was killed without another byte at its end; 0 if any byte differs."""
    found = crashes()[part]
    missed = [f"passed before it could be killed: {name}" for name in PARTS[part] if name not in found.killed]
    broken = [f"{name} made again" for name in found.remade] + [f"{name} differs" for name in found.differing]
    return Measured(0 if broken else len(found.killed), of=len(PARTS[part]), note="; ".join(missed + broken))


@gate("crash-run", Limit("==", 17, "phases"), tier="room")
def crash_run() -> Measured:
    """Count phases of a run with stage 1, a grader's training and stage 2 in which a kill changes no byte."""
    return phases("run")


@gate("crash-refresh", Limit("==", 6, "phases"), tier="room")
def crash_refresh() -> Measured:
    """Count phases of a refresh in which a kill changes no byte."""
    return phases("refresh")


@gate("crash-serve", Limit("==", 6, "kinds"), tier="room")
def crash_serve() -> Measured:
    """Count kinds of kills of a service after which the next run publishes the bytes of an undisturbed one."""
    seen = bench(len(KINDS), 0)
    wrong = {"orphans": seen.orphans, "other bytes": seen.other_bytes, "other versions": seen.other_versions}
    notes = [f"{kind}: {what}" for what, counts in wrong.items() for kind, count in counts.items() if count]
    held = [kind for kind in KINDS if seen.made[kind] and not any(counts[kind] for counts in wrong.values())]
    return Measured(len(held), of=len(KINDS), note="; ".join(notes))


@gate("million-rows-memory", Limit("<=", 325, "MB"), tier="all")
def million_rows_memory() -> Measured:
    """Return the peak memory of a run on a million short rows, without model calls."""
    with TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()):
        return Measured(bench_long_run.run(Path(scratch), 1_000_000, 10_000, 0)[1])


@gate("cron", Limit("==", 4, "versions"), tier="room")
def cron() -> Measured:
    """Count versions that a cron of each minute makes by itself: two, then two more after the service was killed."""
    with TemporaryDirectory() as scratch:
        service = Service(Path(scratch), 'cron = "* * * * *"\n')
        try:
            for number in range(4):
                service.start()
                service.write_problems(number)
                wait_until(lambda number=number: len(stored_versions(service.run)) > number, service.command)
                wait_until(lambda: not is_locked(service.run), service.command, tick_s=0.1)
                if number == 1:  # no run is under way or owed, so what comes after this kill is the cron's
                    for process in victims(service, "the whole tree"):
                        process.send_signal(signal.SIGKILL)
                    assert service.command is not None
                    service.command.wait()
        finally:
            service.stop()
        return Measured(len(stored_versions(service.run)), of=4)


@gate("closed-loop", Limit("==", 5, "steps"), tier="room")
def closed_loop() -> Measured:
    """Count steps of curate, train, refresh, train on the embedded model that leave what the next one needs."""
    from tests.gates.paying import Loop, rows_of
    from training.evaluation.metrics import read_metrics

    with TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()):
        loop, folder = Loop(rounds=1, steps=2, problems=160), Path(scratch)
        model = loop.first_model(folder / "model")
        run = loop.curated(1, folder / "set", model)
        before = set(rows_of(run / "curated")["id"])
        first, second = loop.stretches(1, "refreshed", run, folder, model)
        after = set(rows_of(run / "curated")["id"])
        judged = pl.read_parquet(run / "versions" / "0002" / "decisions.parquet")
        weights = [(place / "model.safetensors").read_bytes() for place in (model, first / "model", second / "model")]
        done = {
            "a curated set": bool(before),
            "a trained model": weights[1] != weights[0] and len(read_metrics(first)) == loop.steps,
            "a refreshed set": [one.origin for one in stored_versions(run)] == ["run", "refresh"] and after != before,
            "decisions by the new model": judged["policy"].n_unique() > 1,
            "a model trained on it": weights[2] != weights[1] and len(read_metrics(second)) == loop.steps,
        }
    missing = [name for name, is_there in done.items() if not is_there]
    return Measured(len(done) - len(missing), of=len(done), note=f"missing: {', '.join(missing)}" if missing else "")
