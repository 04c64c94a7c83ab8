"""verl itself reads, composes, rewards and computes as the embedded engine does; skipped where verl is not there."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.students import verl_recipe
from tests.waiting import PATIENCE_S
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Split
from training.engines.placement import place_verl
from training.engines.verl import configuration
from training.engines.verl.configuration import TRAIN, compile_recipe
from training.engines.verl.environment import missing, process_environment, require_interpreter
from training.engines.verl.run import write_verl_set
from training.objectives.base import CreditInputs
from training.objectives.registry import objective_of
from training.optimisation import trainer as trainer_module
from training.optimisation.distributed import DistributedContext
from training.optimisation.packing import TrainingSample
from training.optimisation.trainer import Trainer
from training.recipe import TrainRecipe
from training.rewards import Reward
from training.rollouts.tasks import load_tasks

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing())]

KEYS = (
    "trainer.nnodes",
    "trainer.n_gpus_per_node",
    "actor_rollout_ref.rollout.nnodes",
    "actor_rollout_ref.rollout.n_gpus_per_node",
    "actor_rollout_ref.actor.strategy",
    "actor_rollout_ref.actor.megatron.expert_model_parallel_size",
    "data.train_batch_size",
    "actor_rollout_ref.actor.optim.override_optimizer_config",
)


@pytest.fixture(autouse=True)
def unclipped(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (configuration, trainer_module):
        monkeypatch.setattr(module, "MAX_GRAD_NORM", 1e9)


def recipe(**changes: Any) -> TrainRecipe:
    table = {"data": {"kind": "embedded", "problems": 12, "seed": 5}, "rewards": {"max_length": 100, "language": 0.0}}
    table |= {"collector": {"group_size": 4, "n_async": 16, "n_batch": 8, "max_staleness": 1}}
    return verl_recipe(**{**table, **changes})


def inside(folder: Path, *parts: str) -> dict[str, Any]:
    module = "tests.training.engines.verl.inside"
    command = [str(require_interpreter()), "-X", "faulthandler", "-m", module, str(folder), *parts]
    quiet = {"HF_HUB_OFFLINE": "1", "RAY_USAGE_STATS_ENABLED": "0", "PYTHONWARNINGS": "ignore"}
    quiet |= {"RAY_raylet_start_wait_time_s": str(int(PATIENCE_S)), "RAY_TMPDIR": tempfile.gettempdir()}
    quiet |= {"RAY_agent_register_timeout_ms": str(1000 * int(PATIENCE_S))}  # a busy machine takes long
    done = subprocess.run(
        command, env=process_environment(quiet), cwd=folder, capture_output=True, text=True, timeout=4 * PATIENCE_S
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    return {part: json.loads((folder / f"{part}.told.json").read_text()) for part in parts}


def test_verl_composes_and_checks_what_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "keys.json").write_text(json.dumps(KEYS))
    for nodes, experts, staleness in itertools.product((1, 4, 32), (False, True), (0, 2)):
        sizes = {"max_staleness": staleness, "n_async": 4096, "n_batch": 2048}
        made = recipe(verl={"nodes": nodes}, collector=sizes)
        job = compile_recipe(made, WEIGHTS, tmp_path, place_verl(made, 8, experts=experts))
        name = f"{nodes}x8-{'experts' if experts else 'dense'}-{staleness}"
        (tmp_path / "jobs" / f"{name}.json").write_text(json.dumps(job))
    job["values"]["trainer.total_steps"] = 3
    (tmp_path / "jobs" / "wrong.json").write_text(json.dumps(job))
    told = inside(tmp_path, "configurations")["configurations"]
    assert "total_steps" in told.pop("wrong")  # a key that verl does not have is refused, not passed over
    assert {name: type(values) for name, values in told.items()} == dict.fromkeys(told, dict), told
    assert len(told) == 12
    dense = told["4x8-dense-2"]
    assert [dense[key] for key in KEYS[:5]] == [2, 8, 2, 8, "fsdp2"]
    assert (dense["data.train_batch_size"], dense[KEYS[7]]) == (128, "{'eps': 1e-08}")
    experts = told["32x8-experts-2"]
    assert [experts[key] for key in KEYS[:6]] == [16, 8, 16, 8, "megatron", 8]
    assert [told["1x8-dense-0"][key] for key in KEYS[:4]] == [1, 8, 0, 8]


OBJECTIVES: dict[str, dict[str, Any]] = {
    "paper": {"kind": "grpo"},
    "dapo": {"kind": "grpo", "preset": "dapo"},
    "gspo": {"kind": "grpo", "preset": "gspo"},
    "pass-at-k": {"kind": "grpo", "credit": "pass_at_k", "k": 2},
    "aipo": {"kind": "aipo"},
}


def test_recorded_batches_give_the_same_advantages_losses_and_gradients(tmp_path: Path) -> None:
    ours = {}
    for name, objective in OBJECTIVES.items():
        made = recipe(objective=objective)
        trainer = Trainer(WEIGHTS, made, DistributedContext(made.compute))
        rows = recorded(trainer)
        credit = objective_of(made.objective).credit(
            CreditInputs(
                [Reward(correctness=row["reward"]) for row in rows],
                torch.tensor([len(row["response"]) for row in rows]),
                torch.tensor([int(row["group"][1]) for row in rows]),
                truncated=[len(row["response"]) >= 100 for row in rows],
            ),
            made.objective,
        )
        weighed = zip(rows, credit.advantages.tolist(), credit.token_weights.tolist(), strict=True)
        samples = [
            TrainingSample(row["prompt"], row["response"], row["generator_logprobs"], advantage, weight)
            for row, advantage, weight in weighed
        ]
        loss = trainer.step(samples, made.objective).loss
        gradient = {name: value.grad for name, value in trainer.policy.named_parameters() if value.grad is not None}
        ours[name] = ((credit.advantages * credit.token_weights).tolist(), loss, gradient)
        folder = tmp_path / "batches" / name
        folder.mkdir(parents=True)
        tasks = list(load_tasks(made.data, Split.TRAIN, tmp_path).values())
        write_verl_set(tasks, made.solving_prompt, folder / "verl" / TRAIN)
        job = compile_recipe(made, WEIGHTS, folder, place_verl(made, 8, experts=False))
        (folder / "job.json").write_text(json.dumps(job))
        batch = {"rows": rows, "model": str(WEIGHTS), "temperature": 1.0, "micro_batches": [[0, 1, 5], [2, 3, 4, 6, 7]]}
        (folder / "batch.json").write_text(json.dumps(batch))
    told = inside(tmp_path, "batches")["batches"]
    for name, (weighted, loss, gradient) in ours.items():
        assert told[name]["advantages"] == pytest.approx(weighted, rel=1e-5, abs=1e-9), name
        assert told[name]["loss"] == pytest.approx(loss, rel=1e-5, abs=1e-6), name
        theirs = torch.load(tmp_path / "batches" / name / "gradient.pt")
        theirs = {part: theirs[part.removeprefix("model.") if part not in theirs else part] for part in gradient}
        scale = max(float(value.abs().max()) for value in gradient.values())
        assert scale > 0, name
        worst = max(float((value - theirs[part]).abs().max()) for part, value in gradient.items())
        assert worst <= 1e-5 * scale, name


def recorded(trainer: Trainer) -> list[dict[str, Any]]:
    """Eight rollouts in two groups, as a generator that is not quite the trainer drew them, with their rewards."""
    chance, rows = random.Random(3), []
    for group in range(2):
        prompt = [1, *(chance.randrange(3, 600) for _ in range(4 + group))]
        for _ in range(4):
            words = [chance.randrange(3, 600) for _ in range(chance.choice([7, 19, 100]))]
            rows.append({"prompt": prompt, "response": words, "group": f"g{group}"})
    plain = [TrainingSample(row["prompt"], row["response"], [0.0] * len(row["response"]), 0.0, 0.0) for row in rows]
    for row, scored in zip(rows, trainer.scorer.logprobs(plain), strict=True):
        row["generator_logprobs"] = [min(value + chance.uniform(-0.5, 0.5), 0.0) for value in scored.tolist()]
        row["reward"] = chance.choice([0.0, 0.1, 1.0, 0.95])
    rows[0]["reward"] = rows[4]["reward"] = 0.05  # no group is without diversity
    return rows
