"""Trained tokens per second of our loop and of TRL's GRPOTrainer, for the gate `training/trl-tokens`.

Both sides train the embedded model (fp32, CPU): batches of 128 attempts in groups of 8, at most 112 tokens each, one
optimiser step a batch, temperature 1, each in a process of its own; the first steps are not counted. A token counts as
trained on when it is a response token of a trained batch. TRL also trains on groups whose rewards are all equal, where
there is nothing to learn; with ``diversity = "none"`` ours does too, so that both do the same work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from itertools import islice
from pathlib import Path
from typing import Any

from tests.cpu_durations import cpu_s

ROOT = Path(__file__).resolve().parents[2]
PEER = Path(__file__).with_name("trl_peer.py")
GROUP, BATCH, TOKENS, RATE, WARM = 8, 128, 112, 5e-4, 4


def recipe(steps: int, seed: int) -> dict[str, Any]:
    """Return our side's recipe; the collector's staleness is the embedded recipe's."""
    return {
        "name": "bench",
        "seed": seed,
        "steps": steps,
        "model": "student",
        "models": {"student": {"kind": "torch", "model": "embedded", "prompt": "plain"}},
        "data": {"kind": "embedded", "problems": 2000, "seed": 11},
        "collector": {"group_size": GROUP, "n_async": BATCH, "n_batch": BATCH, "max_staleness": 2},
        "rewards": {"max_length": TOKENS, "length_penalty": 0.0, "language": 0.0},
        "optim": {"learning_rate": RATE, "warmup_steps": 1},
        "packing": {"micro_batch_tokens": 4096},
        "checkpoints": {"every": steps},
    }


def ours(steps: int, seed: int, folder: Path, diversity: str = "reward") -> float:
    """Return our loop's tokens trained on per CPU second, over the steps that count."""
    (folder / "recipe.json").write_text(json.dumps(recipe(steps, seed)))
    (folder / "diversity").write_text(diversity)
    execute([sys.executable, "-m", "tests.benchmarks.bench_trainer", str(folder)], folder, threads=1)
    rows = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    spent: dict[int, float] = dict(json.loads((folder / "cpu.json").read_text()))
    first, last = min(step for step in spent if step >= WARM), max(spent)
    counted = (row["speed/trained_tokens_s"] * row["speed/step_s"] for row in rows if first < row["step"] <= last)
    return float(sum(counted)) / (spent[last] - spent[first])


def train_ours(folder: Path) -> None:
    from training.engines.embedded.run import train
    from training.objectives.grpo import GrpoSettings
    from training.recipe import TrainRecipe

    GrpoSettings.presets = {"paper": {"group_filter": (folder / "diversity").read_text()}}
    spent: list[tuple[int, float]] = []
    over = threading.Event()
    watch = threading.Thread(target=watch_steps, args=(folder / "run" / "metrics.jsonl", spent, over))
    watch.start()
    try:
        train(TrainRecipe.model_validate_json((folder / "recipe.json").read_text()), ROOT, folder / "run")
    finally:
        over.set()
        watch.join()
    (folder / "cpu.json").write_text(json.dumps(spent))


def watch_steps(metrics: Path, spent: list[tuple[int, float]], over: threading.Event) -> None:
    """Note the processor time of this process and those below it, judges and engine, whenever a step is done."""
    while not over.wait(0.05):
        steps = len(metrics.read_text().splitlines()) if metrics.exists() else 0
        if steps > (spent[-1][0] if spent else 0):
            spent.append((steps, cpu_s()))


def theirs(peer: str, threads: int, steps: int, seed: int, folder: Path) -> float:
    """Return TRL's tokens trained on per CPU second, over the steps that count."""
    from training.embedded_model import WEIGHTS
    from training.embedded_model.problems import Split, generate_exercises

    exercises = islice(generate_exercises(11, Split.TRAIN), 2000)
    rows = [json.dumps({"statement": row.statement, "answer": str(row.answer)}) for row in exercises]
    (folder / "prompts.jsonl").write_text("\n".join(rows))
    work = {"model": str(WEIGHTS), "prompts": str(folder / "prompts.jsonl"), "folder": str(folder / "run")}
    sizes = {"group": GROUP, "batch": BATCH, "max_tokens": TOKENS, "learning_rate": RATE}
    (folder / "work.json").write_text(json.dumps({**work, **sizes, "steps": steps, "seed": seed, "threads": threads}))
    execute([peer, str(PEER), str(folder / "work.json"), str(folder / "out.json")], folder, threads)
    steps_made = json.loads((folder / "out.json").read_text())
    cpu = steps_made[-1]["cpu"] - steps_made[WARM - 1]["cpu"]
    return float(sum(row["tokens"] for row in steps_made[WARM:])) / cpu


def execute(command: list[str], folder: Path, threads: int) -> None:
    quiet = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": str(threads)}
    with (folder / "said").open("wb") as log:
        completed = subprocess.run(command, cwd=ROOT, env={**os.environ, **quiet}, stdout=log, stderr=log, check=False)
    if completed.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{(folder / 'said').read_text(errors='replace')[-3000:]}")


if __name__ == "__main__":
    train_ours(Path(sys.argv[1]))
