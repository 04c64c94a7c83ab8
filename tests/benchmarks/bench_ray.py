"""Shards on Ray beside this process: seconds with no Ray, with one worker and with two, and whether the bytes agree.

    .venv/bin/python -m tests.benchmarks.bench_ray [--rows 200000] [--tasks 96]

Two pieces of work, each in shards: the format filter and the reference check of ``--rows`` sums, and every solution of
``--tasks`` programming problems on every test, in the sandbox. The seconds are those of the stages alone: Ray is up
before, and each of its workers has done one shard. Of the programs' runs all columns are compared but the seconds that
they took. What a cluster costs before, its start and the first shards of its workers, is printed apart. Shards hold
2,000 sums: of 250, most of the time is what each shard costs here and there, whoever computes it.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from curation.storage.stages import read_table
from flows.run.pipeline import run_pipeline, run_stage
from flows.run.run_folder import Run, new_run
from flows.run.runner_ray import runner_of
from flows.stages.execution_matrix import EXECUTION_MATRIX
from flows.stages.programs import PROGRAMS
from flows.stages.references import REFERENCES
from flows.stages.sources import SOURCES
from flows.stages.statements import STATEMENTS
from tests.demo_data.code.faults import row_of
from tests.demo_data.code.tasks import TASKS
from tests.flows.conftest import write_jsonl
from tests.flows.run.test_runner import CODE_RECIPE, RECIPE


def sums(run: Run) -> tuple[float, object]:
    """Return seconds of the format filter and the reference check, and what they kept."""
    read = run_pipeline(run, [SOURCES])
    begun = time.perf_counter()
    checked = run_pipeline(run, (STATEMENTS, REFERENCES), results=read)[REFERENCES]
    return time.perf_counter() - begun, checked.manifest.digest


def programs(run: Run) -> tuple[float, object]:
    """Return seconds of every program on every test, and the results."""
    filtered = run_pipeline(run, (SOURCES, PROGRAMS))
    begun = time.perf_counter()
    matrix = run_stage(EXECUTION_MATRIX, run, filtered)
    return time.perf_counter() - begun, read_table(matrix.folder, "runs").drop("cpu_s").rows()


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of a piece of work, of its workers' first shards before it, and what came out."""

    first_s: float
    work_s: float
    result: object


def timed(work: Callable[[Run], tuple[float, object]], recipe: Path, runner: str, rows: int) -> Took:
    """Time the work in a fresh folder; before it, on Ray, do the same work once on a few rows in two shards."""
    overrides, first_s = [f"runner={runner}"], 0.0
    with tempfile.TemporaryDirectory() as name, runner_of(new_run(recipe, overrides, Path(name)).recipe):
        if runner == "ray":
            first_s, _ = work(new_run(recipe, [*overrides, "sources.0.limit=4", "shard_rows=2"], Path(name) / "warm"))
        return Took(first_s, *work(new_run(recipe, [*overrides, f"shard_rows={rows}"], Path(name) / "run")))


def woken(all_of: int) -> None:
    """Start so many workers with their modules imported: a task holds its core until all of them run."""
    import ray

    def wake() -> None:
        import flows.pipelines.by_recipe  # noqa: F401

        time.sleep(2)

    task = ray.remote(num_cpus=1)(wake)
    ray.get([task.remote() for _ in range(all_of)])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=200_000)
    options.add_argument("--tasks", type=int, default=96)
    parsed = options.parse_args()
    os.environ.setdefault("RAY_worker_niceness", "0")  # as `flows.run.runner_ray` has it, for the clusters made here
    import ray

    with tempfile.TemporaryDirectory() as name:
        inputs = Path(name)
        (inputs / "sums.toml").write_text(RECIPE)
        (inputs / "code.toml").write_text(CODE_RECIPE)
        rows = ({"q": f"What is {n} times {n % 7} plus 1?", "a": f"{n * (n % 7) + 1}"} for n in range(parsed.rows))
        write_jsonl(inputs / "sums.jsonl", list(rows))
        draw = random.Random(5)
        write_jsonl(inputs / "lists.jsonl", [row_of(task, draw) for task in (TASKS * 8)[: parsed.tasks]])
        works = {"sums": (sums, inputs / "sums.toml", 2000), "programs": (programs, inputs / "code.toml", 1)}
        print(f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
        local = {work_name: timed(work, recipe, "local", size) for work_name, (work, recipe, size) in works.items()}
        measured, started = {"this process, one slot": local}, {"this process, one slot": 0.0}
        for workers in (1, 2):
            begun = time.perf_counter()
            ray.init(
                address="local", num_cpus=workers, include_dashboard=False, log_to_driver=False, configure_logging=False
            )
            woken(workers)
            who = f"Ray, {workers} worker{'s' * (workers > 1)}"
            started[who] = time.perf_counter() - begun
            measured[who] = {
                work_name: timed(work, recipe, "ray", size) for work_name, (work, recipe, size) in works.items()
            }
            ray.shutdown()
            print(f"{workers}: load {os.getloadavg()[0]:.1f}", flush=True)
    print(f"| | Ray's start, s | first, s | {parsed.rows} sums, s | {parsed.tasks} problems, s | the same |")
    print("|---|---|---|---|---|---|")
    for who, took in measured.items():
        same = all(took[work_name].result == local[work_name].result for work_name in works)
        times = (
            started[who],
            sum(timing.first_s for timing in took.values()),
            took["sums"].work_s,
            took["programs"].work_s,
        )
        print(f"| {who} | {' | '.join(f'{seconds:.1f}' for seconds in times)} | {'yes' if same else 'NO'} |")


if __name__ == "__main__":
    main()
