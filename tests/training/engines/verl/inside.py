"""Runs inside verl's environment: what verl makes of a run's configuration and batch, as FOLDER/PART.told.json.

PYTHON -m tests.training.engines.verl.inside FOLDER PART …
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def configurations(folder: Path) -> Any:
    from omegaconf import OmegaConf

    from training.engines.verl.inside import check, compose

    told = {}
    for job in sorted(folder.glob("jobs/*.json")):
        try:
            config = compose(json.loads(job.read_text()))
            check(config)
        except Exception as error:  # noqa: BLE001 - the test asks what was said
            told[job.stem] = f"{type(error).__name__}: {error}"
            continue
        asked = json.loads((folder / "keys.json").read_text())
        told[job.stem] = {key: OmegaConf.select(config, key) for key in asked}
    return told


def batches(folder: Path) -> Any:
    from training.engines.verl.configuration import run_facts

    told = {}
    for run in sorted(folder.glob("batches/*")):
        os.environ.update(json.loads((run / "job.json").read_text())["environment"])
        run_facts.cache_clear()
        told[run.name] = batch(run)
    return told


def batch(folder: Path) -> Any:
    """Advantages, loss and gradient of a recorded batch, by verl's own ways to our plugin, in two micro-batches."""
    import numpy as np
    import torch
    from omegaconf import OmegaConf
    from tensordict import TensorDict
    from transformers import AutoModelForCausalLM
    from verl import DataProto
    from verl.trainer.ppo.ray_trainer import compute_advantage
    from verl.utils import tensordict_utils as tu
    from verl.utils.config import omega_conf_to_dataclass
    from verl.utils.torch_functional import logprobs_from_logits
    from verl.workers.utils.losses import ppo_loss
    from verl.workers.utils.padding import response_to_nested

    from training.engines.verl.inside import compose

    recorded = json.loads((folder / "batch.json").read_text())
    config = compose(json.loads((folder / "job.json").read_text()))
    rows = recorded["rows"]
    longest = max(len(row["response"]) for row in rows)
    mask = torch.tensor([[1] * len(row["response"]) + [0] * (longest - len(row["response"])) for row in rows])
    rewards = torch.zeros(len(rows), longest)
    for place, row in enumerate(rows):
        rewards[place, len(row["response"]) - 1] = row["reward"]
    uids = np.array([row["group"] for row in rows], dtype=object)
    data = DataProto.from_dict(
        {"token_level_rewards": rewards, "response_mask": mask, "responses": mask}, non_tensors={"uid": uids}
    )
    algorithm = config.algorithm
    folded = compute_advantage(data, adv_estimator=algorithm.adv_estimator, config=algorithm).batch["advantages"]

    model = AutoModelForCausalLM.from_pretrained(recorded["model"], dtype=torch.float32)
    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    total = 0.0
    for places in recorded["micro_batches"]:
        part = [rows[place] for place in places]
        names = {"prompt": "prompts", "response": "responses", "generator_logprobs": "old_log_probs"}
        columns = {
            verls: torch.nested.as_nested_tensor([torch.tensor(row[name]) for row in part], layout=torch.jagged)
            for name, verls in names.items()
        }
        own = torch.nested.as_nested_tensor([torch.ones(len(row["response"])) for row in part], layout=torch.jagged)
        columns |= {"response_mask": own, "advantages": response_to_nested(folded[places], own)}
        fields = TensorDict(columns, batch_size=len(part))
        tu.assign_non_tensor(fields, dp_size=1, batch_num_tokens=int(mask.sum()), global_batch_size=len(rows))
        whole = []
        for row in part:
            ids = torch.tensor([row["prompt"] + row["response"]])
            logits = model(ids).logits / recorded["temperature"]
            labels = torch.roll(ids, -1, dims=1)
            whole.append(logprobs_from_logits(logits[0], labels[0], inplace_backward=False))
        logprobs = torch.nested.as_nested_tensor(whole, layout=torch.jagged)
        loss, _metrics = ppo_loss(actor, {"log_probs": logprobs}, fields)
        loss.backward()
        total += float(loss.detach())
    gradient = {name: value.grad for name, value in model.named_parameters() if value.grad is not None}
    torch.save(gradient, folder / "gradient.pt")
    assert OmegaConf.select(config, "actor_rollout_ref.actor.policy_loss.loss_mode") == "goldilocks"
    return {"loss": total, "advantages": [float(row[0]) for row in folded]}


PARTS: dict[str, Callable[[Path], Any]] = {part.__name__: part for part in (configurations, batches)}


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0])
    job = folder / "job.json"
    if job.exists():
        os.environ.update(json.loads(job.read_text())["environment"])
    for name in arguments[1:]:
        told = PARTS[name](folder)
        (folder / f"{name}.told.json").write_text(json.dumps(told, default=str))


if __name__ == "__main__":
    asyncio.set_event_loop(asyncio.new_event_loop())
    main(sys.argv[1:])
