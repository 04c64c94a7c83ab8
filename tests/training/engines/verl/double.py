"""A double of verl's trainer for runs of several stages: its loop, its checkpoints and its marks, and our own plugin.

    PYTHON -m tests.training.engines.verl.double -m training.engines.verl.inside RUN/verl/job.json

Each group is half right, and its responses are a quarter of the longest, so length and reward are flat at once.
RUN/verl/seen.jsonl gets what it was started with. RUN/verl/kill names a step and a moment at which it ends as killed,
once: ``before``: the step is not saved; ``marked``: verl's mark is written, our state is not.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import polars as pl

from tests.places import ROOT
from training.embedded_model import WEIGHTS
from training.rewards import Reward

PLUGIN = ROOT / "training" / "engines" / "verl" / "plugin"


def main(arguments: list[str]) -> None:
    path = Path(arguments[2])
    job = json.loads(path.read_text())
    os.environ.update(job["environment"])
    _stub_verl()
    train(path.parent, job["values"])


def _stub_verl() -> None:
    """Let the plugin's modules be imported one by one, without verl."""
    package = ModuleType("training.engines.verl.plugin")
    package.__path__ = [str(PLUGIN)]
    sys.modules[package.__name__] = package
    bases = {"verl.trainer.ppo.checkpoint_callback": "CheckpointCallback"}
    bases |= {"verl.utils.dataset.rl_dataset": "RLHFDataset"}
    for path, base in bases.items():
        for end in range(path.count(".") + 1):
            name = ".".join(path.split(".")[: end + 1])
            sys.modules.setdefault(name, ModuleType(name))
        setattr(sys.modules[path], base, object)


def train(folder: Path, values: dict[str, Any]) -> None:
    from training.engines.verl.groups import open_ledger
    from training.engines.verl.plugin.curriculum import CurriculumCheckpoint
    from training.rollouts import curriculum

    curriculum.PLATEAU_WINDOW = 4
    checkpoints = Path(values["trainer.default_local_dir"])
    latest = checkpoints / "latest_checkpointed_iteration.txt"
    rows = pl.read_parquet(values["data.train_files"][0]).to_dicts()
    begun = int(latest.read_text()) if latest.exists() else 0
    ledger = open_ledger(rows, checkpoints)
    seen = {
        "begun": begun,
        "response_length": values["data.max_response_length"],
        "groups": values["data.train_batch_size"],
        "queue": (checkpoints / f"global_step_{begun}" / "transfer_queue").exists(),
        "pools": ledger.curriculum.pool_sizes(),
    }
    with (folder / "seen.jsonl").open("a") as file:
        file.write(json.dumps(seen) + "\n")
    trainer = SimpleNamespace(total_training_steps=values["trainer.total_training_steps"])
    step, kill = begun + 1, folder / "kill"
    while step <= trainer.total_training_steps:
        is_last = step >= trainer.total_training_steps
        metrics = {f"goldilocks/{name}": value for name, value in ledger.after_step(step - 1).items()}
        for group in range(values["data.train_batch_size"]):
            _decide(ledger, rows, f"{step}-{group}", step, values["data.max_response_length"])
        asked = kill.read_text().split() if kill.exists() else ["0", ""]
        if asked == [str(step), "before"]:
            kill.unlink()
            os._exit(9)
        if is_last or step % values["trainer.save_freq"] == 0:
            target = checkpoints / f"global_step_{step}"
            shutil.copytree(WEIGHTS, target / "actor" / "huggingface")
            (target / "transfer_queue").mkdir()
            latest.write_text(str(step))
            if asked == [str(step), "marked"]:
                kill.unlink()
                os._exit(9)
            CurriculumCheckpoint().on_save(trainer, step, str(target))
        with Path(os.environ["VERL_FILE_LOGGER_PATH"]).open("a") as file:
            file.write(json.dumps({"step": step, "data": metrics}) + "\n")
        step += 1
    ledger.close()


def _decide(ledger: Any, rows: list[dict[str, Any]], name: str, step: int, longest: int) -> None:
    from training.engines.verl.groups import JudgedRollout, reward_fields

    problem = rows[ledger.draw()]["extra_info"]["id"]
    told = {"outcome": None, "method": "m", "answer": "1", "finish": "stop", "tokens": longest - 1}
    rewards = (Reward(0.1, 0.9, -0.05, correct=True), Reward(0.1, 0.0, -0.05)) * 2  # the limit binds
    rollouts = [JudgedRollout.of(reward_fields(reward, told)) for reward in rewards]
    ledger.decide(name, problem, rollouts, step)


if __name__ == "__main__":
    main(sys.argv[1:])
