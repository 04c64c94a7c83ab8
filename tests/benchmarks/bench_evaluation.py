"""How long training waits for its evaluations: beside it, and with training stopped for them; the embedded model.

    OMP_NUM_THREADS=1 .venv/bin/python -m tests.benchmarks.bench_evaluation [--steps 24] [--rounds 2] [--staleness 1 0]
        [--problems 40] [--attempts 4] [--trainer-s 0]

Both take turns in the same process, from the same weights and seeds: every fourth step the held-out problems are asked.
Printed are wall and CPU seconds of a run, the share of its wall time in which training waits for an evaluation, and how
long it waits for each. The evaluations before the first step and behind the last one count too; behind the last nothing
is left to run beside.

Trainer and generator share this machine's cores, so what one does beside the other it takes from it. With
``--trainer-s`` every gradient step also sleeps so long, as if the trainer had a GPU of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.training.engines.embedded.test_run import small
from training.engines.embedded.evaluating import Evaluations
from training.engines.embedded.run import train
from training.evaluation.metrics import read_metrics
from training.optimisation.trainer import Trainer

EVERY = 4


def timed(given: argparse.Namespace, staleness: int, *, beside: bool) -> dict[str, float]:
    """Train once and return what it took."""
    evaluation: dict[str, Any] = {
        "data": {"kind": "embedded", "problems": given.problems, "seed": 9},
        "attempts": given.attempts,
        "every": EVERY,
    }
    table = small(
        steps=given.steps,
        checks=False,
        evaluation=evaluation,
        collector={"max_staleness": staleness},
        checkpoints={"every": given.steps},
    )
    usual = Evaluations.is_beside
    with patch.object(Evaluations, "is_beside", usual if beside else False), tempfile.TemporaryDirectory() as folder:
        busy = time.process_time()
        train(table, Path(), Path(folder) / "run")
        busy = time.process_time() - busy
        rows = read_metrics(Path(folder) / "run")
        wall = json.loads((Path(folder) / "run" / "summary.json").read_text())["wall_s"]
    waited = sum(row.get("speed/evaluation_wait_s", 0.0) for row in rows)
    return {
        "wall": wall,
        "cpu": busy,
        "waited": waited,
        "evaluations": sum("evaluation/pass_rate" in row for row in rows),
    }


def main() -> None:
    """Read the command line, take turns, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--steps", type=int, default=24)
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--staleness", type=int, nargs="+", default=[1, 0])
    options.add_argument("--problems", type=int, default=40)
    options.add_argument("--attempts", type=int, default=4)
    options.add_argument("--trainer-s", type=float, default=0.0)
    given = options.parse_args()
    computed = Trainer.step

    def step(trainer: Trainer, *arguments: Any) -> Any:
        result = computed(trainer, *arguments)
        time.sleep(given.trainer_s)
        return result

    Trainer.step = step  # type: ignore[method-assign]
    for staleness in given.staleness:
        runs: dict[bool, list[dict[str, float]]] = {False: [], True: []}
        for _ in range(given.rounds):
            for beside, taken in runs.items():
                taken.append(timed(given, staleness, beside=beside))
        for beside, taken in runs.items():
            share = statistics.mean(one["waited"] / one["wall"] for one in taken)
            each = statistics.mean(one["waited"] / one["evaluations"] for one in taken)
            wall, cpu = (", ".join(f"{one[name]:.1f}" for one in taken) for name in ("wall", "cpu"))
            how = "beside training" if beside else "training stops"
            print(
                f"staleness {staleness}, {how}: {100 * share:.1f} % of the wall time waits for evaluations "
                f"({each:.2f} s for each of {taken[0]['evaluations']:.0f}); wall {wall} s, CPU {cpu} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
