"""Trained tokens per second: our loop beside TRL's GRPOTrainer, on one model, the same problems, batch and lengths.

    python -m tests.benchmarks.bench_trainer [--peer PYTHON_WITH_TRL] [--steps 16] [--rounds 2] [--vllm]

The peer's interpreter lives in an environment of its own, for instance

    python -m venv /tmp/trl && /tmp/trl/bin/pip install trl torch transformers

Both sides train the embedded model (fp32, CPU): batches of 128 attempts in groups of 8, at most 112 tokens each, one
optimiser step a batch, temperature 1. They take turns, each in a process of its own; the first steps are not counted.
A token counts as trained on when it is a response token of a trained batch. TRL also trains on groups whose rewards are
all equal, where there is nothing to learn; ours drops them and samples others in their place. So ours is timed twice:

  - ``ours, every group``: none is dropped (the variant's ``group_filter`` is ``none``). Both sides sample and train on
    a batch a step: the ratio to all of TRL's tokens is that of the same work;
  - ``ours``: as it is by default. The ratio to TRL's tokens of groups that can teach compares what is learnt from; that
    to all of TRL's tokens is the lowest there is: ours samples about two tokens then for each it trains on.

Beside other work
on the machine trust the ratio for the same processor time: there, a side with several threads gets more of the
processors. TRL is timed with one thread and with two, and the better one counts. ``--vllm`` also
times our loop with vLLM as its generator.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from itertools import islice
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[2]
PEER = Path(__file__).with_name("trl_peer.py")
OURS, EVERY = "ours", "ours, every group"
GROUP, BATCH, TOKENS, RATE, WARM = 8, 128, 112, 5e-4, 4


def recipe(kind: str, steps: int, seed: int) -> dict[str, Any]:
    """Return our side's recipe; the collector's staleness is the embedded recipe's."""
    generator: dict[str, Any] = {"kind": kind}
    if kind == "vllm":
        generator |= {"dtype": "float32", "kv_cache_mb": 128}
    return {
        "name": "bench",
        "seed": seed,
        "steps": steps,
        "model": "student",
        "models": {"student": {"model": "embedded", "prompt": "plain", **generator}},
        "data": {"kind": "embedded", "problems": 2000, "seed": 11},
        "collector": {"group_size": GROUP, "n_async": BATCH, "n_batch": BATCH, "max_staleness": 2},
        "rewards": {"max_length": TOKENS, "length_penalty": 0.0, "language": 0.0},
        "optim": {"learning_rate": RATE, "warmup_steps": 1},
        "packing": {"micro_batch_tokens": 4096},
        "checkpoints": {"every": steps},
    }


def ours(kind: str, steps: int, seed: int, folder: Path, diversity: str = "reward") -> dict[str, float]:
    """Return our loop's figures over the steps that count."""
    (folder / "recipe.json").write_text(json.dumps(recipe(kind, steps, seed)))
    (folder / "diversity").write_text(diversity)
    command = [sys.executable, "-m", "tests.benchmarks.bench_trainer", "--side", str(folder)]
    execute(command, folder, threads=1)
    rows = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    rows = [row for row in rows if row["step"] > WARM]
    seconds = sum(row["speed/step_s"] for row in rows)
    trained = sum(row["speed/trained_tokens_s"] * row["speed/step_s"] for row in rows)
    sampled = sum(row["speed/sampled_tokens_s"] * row["speed/step_s"] for row in rows)
    spent: dict[int, float] = dict(json.loads((folder / "cpu.json").read_text()))
    cpu = spent[max(spent)] - spent[min_step(spent)]
    counted = sum(
        r["speed/trained_tokens_s"] * r["speed/step_s"] for r in rows if min_step(spent) < r["step"] <= max(spent)
    )
    return {
        "trained": trained / seconds,
        "sampled": sampled / seconds,
        "per_cpu_s": counted / cpu,
        "step_s": seconds / len(rows),
    }


def min_step(spent: dict[int, float]) -> int:
    """Return the first step that counts whose processor time was recorded."""
    return min(step for step in spent if step >= WARM)


def train_ours(folder: Path) -> None:
    """Run the process of our side."""
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
            family = [psutil.Process(), *psutil.Process().children(recursive=True)]
            spent.append((steps, sum(map(processor_time, family))))


def processor_time(process: psutil.Process) -> float:
    """Return processor seconds, those of ended children included."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return float(sum(process.cpu_times()[:4]))
    return 0.0


def theirs(peer: str, threads: int, steps: int, seed: int, folder: Path) -> dict[str, float]:
    """Return TRL's figures over the steps that count."""
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
    seconds = steps_made[-1]["at"] - steps_made[WARM - 1]["at"]
    counted = steps_made[WARM:]
    trained = sum(row["tokens"] for row in counted) / seconds
    teaching = sum(row["mixed"] for row in counted) / seconds
    cpu = steps_made[-1]["cpu"] - steps_made[WARM - 1]["cpu"]
    per_cpu = sum(row["tokens"] for row in counted) / cpu
    return {"trained": trained, "teaching": teaching, "per_cpu_s": per_cpu, "step_s": seconds / len(counted)}


def execute(command: list[str], folder: Path, threads: int) -> None:
    quiet = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": str(threads)}
    with (folder / "said").open("wb") as log:
        completed = subprocess.run(command, cwd=ROOT, env={**os.environ, **quiet}, stdout=log, stderr=log, check=False)
    if completed.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{(folder / 'said').read_text(errors='replace')[-3000:]}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--peer", help="a Python interpreter that has TRL")
    options.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="TRL's threads; each is timed")
    options.add_argument("--steps", type=int, default=16)
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--vllm", action="store_true", help="also time our loop with vLLM generating")
    options.add_argument("--side", type=Path, help=argparse.SUPPRESS)
    parsed = options.parse_args()
    if parsed.side is not None:
        return train_ours(parsed.side)
    if parsed.steps <= WARM:
        raise SystemExit(f"--steps {parsed.steps}: the first {WARM} are not counted; give more")
    peers = [f"TRL, {threads} threads" for threads in parsed.threads]
    figures_of: dict[str, list[dict[str, float]]] = defaultdict(list)
    for seed in range(parsed.rounds):
        for name in [OURS, EVERY, *(["ours, vLLM"] if parsed.vllm else []), *(peers if parsed.peer else [])]:
            with tempfile.TemporaryDirectory() as folder:
                if name.startswith("ours"):
                    kind, diversity = "vllm" if "vLLM" in name else "torch", "none" if name == EVERY else "reward"
                    run_figures = ours(kind, parsed.steps, seed, Path(folder), diversity)
                else:
                    run_figures = theirs(parsed.peer, int(name.split()[1]), parsed.steps, seed, Path(folder))
            figures_of[name].append(run_figures)
            figures = ", ".join(f"{label} {value:.2f}" for label, value in run_figures.items())
            print(f"round {seed + 1}, {name}: {figures}; load {os.getloadavg()[0]:.1f}", flush=True)
    median = {
        name: statistics.median(run_figures["trained"] for run_figures in runs) for name, runs in figures_of.items()
    }
    print("tokens trained on per second, median: " + ", ".join(f"{name} {value:.0f}" for name, value in median.items()))
    if not parsed.peer:
        return print("TRL is absent: give --peer PYTHON of an environment that has it, for the ratio")
    best = max(peers, key=lambda name: median[name])
    teaching = statistics.median(run_figures["teaching"] for run_figures in figures_of[best])
    for name in (name for name in median if name.startswith("ours")):
        learnt = "the same work" if name == EVERY else f"{median[name] / teaching:.2f} of those that can teach"
        print(
            f"{name} / {best}: {median[name] / median[best]:.2f} of all its tokens, {learnt}, "
            f"{cpu(figures_of[name]) / max(cpu(figures_of[peer]) for peer in peers):.2f} for the same processor time"
        )


def cpu(runs: list[dict[str, float]]) -> float:
    """Return tokens per second of processor time, all processes of a side together."""
    return statistics.median(figures["per_cpu_s"] for figures in runs)


if __name__ == "__main__":
    main()
