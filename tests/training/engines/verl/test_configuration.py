"""A recipe compiled for verl: what each key becomes, what is refused, and which differences are reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from curation.config.loading import parse_settings
from curation.records import ConfigError
from tests.training.students import student
from tests.training.students import verl_recipe as recipe
from training.engines.placement import VerlPlacement, place_verl
from training.engines.verl.configuration import (
    RECIPE_VARIABLE,
    compile_recipe,
    refuse_what_differs,
    replacements,
    run_facts,
)
from training.recipe import TrainRecipe

APART, TOGETHER = VerlPlacement(2, 8, 2, 8), VerlPlacement(4, 8)


def compiled(made: TrainRecipe, placement: VerlPlacement = APART) -> dict[str, Any]:
    return compile_recipe(made, Path("/m"), Path("/out"), placement)


def at(job: dict[str, Any], key: str, section: str = "values") -> Any:
    return job[section][key]


def test_batches_and_staleness_are_the_papers() -> None:
    sizes = {"group_size": 16, "n_async": 4096, "n_batch": 2048, "n_minibatch": 512, "max_staleness": 3}
    made = compiled(recipe(collector=sizes))
    assert at(made, "data.train_batch_size") == 128  # verl counts groups
    assert at(made, "actor_rollout_ref.actor.ppo_mini_batch_size") == 32
    assert at(made, "trainer.v1.separate_async.parameter_sync_step") == 4
    assert at(made, "trainer.v1.separate_async.num_warmup_batches") == 2.0
    fresher = compiled(recipe(collector=sizes | {"max_staleness": 1}))  # a batch is as old as batches are ahead of it
    assert at(fresher, "trainer.v1.separate_async.num_warmup_batches") == 1.0
    assert at(made, "trainer.v1.sampler.max_off_policy_threshold") == 4
    assert at(made, "trainer.v1.trainer_mode") == "separate_async"
    assert at(made, "actor_rollout_ref.rollout.max_num_seqs") == 256  # 4,096 over 16 engines


def test_lengths_decoding_and_rates_are_the_recipes() -> None:
    changes = student(kind="vllm", thinking="none", decoding={"temperature": 0.8}) | {"rewards": {"max_length": 900}}
    changes |= {"optim": {"learning_rate": 3e-6, "warmup_steps": 4}, "packing": {"micro_batch_tokens": 9000}}
    made = compiled(recipe(**changes))
    rollout, actor = "actor_rollout_ref.rollout", "actor_rollout_ref.actor"
    assert at(made, f"{rollout}.temperature") == 0.8
    assert (at(made, f"{rollout}.response_length"), at(made, f"{rollout}.max_model_len")) == (900, 900 + 4096)
    assert at(made, "data.max_response_length") == 900
    optim = [at(made, f"{actor}.optim.{name}") for name in ("lr", "betas", "lr_warmup_steps")]
    assert optim == [3e-6, [0.9, 0.95], 4]
    assert at(made, f"{actor}.ppo_max_token_len_per_gpu") == 9000
    assert at(made, f"{actor}.optim.override_optimizer_config", "added") == {"eps": 1e-8}
    assert at(made, "data.apply_chat_template_kwargs", "added") == {"enable_thinking": False, "thinking": False}


def test_waiting_generators_share_the_gpus_and_experts_go_to_megatron() -> None:
    waiting = compiled(recipe(collector={"max_staleness": 0}), TOGETHER)
    assert at(waiting, "trainer.v1.trainer_mode") == "sync"
    assert at(waiting, "actor_rollout_ref.hybrid_engine") is True
    assert "actor_rollout_ref.rollout.nnodes" not in waiting["values"]
    for made, experts, context in ((recipe(), 4, 1), (recipe(verl={"nodes": 4, "sequence_parallel": 2}), 8, 2)):
        job = compiled(made, place_verl(made, 8, experts=True))
        assert job["groups"] == ["model_engine=megatron"]
        assert at(job, "actor_rollout_ref.actor.megatron.expert_model_parallel_size") == experts
        assert at(job, "actor_rollout_ref.actor.megatron.context_parallel_size") == context


def test_the_recipe_reaches_verls_processes_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    made = recipe(objective={"kind": "grpo", "eps_high": 0.3}, rewards={"max_length": 100})
    job = json.loads(json.dumps(compiled(made)))
    monkeypatch.setenv(RECIPE_VARIABLE, job["environment"][RECIPE_VARIABLE])
    run_facts.cache_clear()
    facts = run_facts()
    run_facts.cache_clear()
    assert facts.recipe == made
    assert (facts.out, facts.recipe.rewards.max_length) == (Path("/out"), 100)
    monkeypatch.delenv(RECIPE_VARIABLE)
    with pytest.raises(ConfigError, match="is not set"):
        run_facts()
    assert at(job, "ray_kwargs.ray_init.runtime_env.env_vars", "added") == job["environment"]
    assert at(job, "ray_kwargs.ray_init.address", "added") == "local"
    assert job["environment"]["VERL_FILE_LOGGER_PATH"].endswith("verl/steps-0.jsonl")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"objective": {"kind": "soft"}}, "a second pass, or no group"),
        ({"objective": {"kind": "grpo", "kl_coef": 0.1}}, "objective.kl_coef > 0"),
        ({"objective": {"kind": "grpo", "credit": "majority", "k": 2}}, "needs the answers"),
        (student(kind="torch"), "models.student.kind: verl starts vLLM itself"),
        ({"checkpoints": {"trajectory": 2}}, "checkpoints.trajectory"),
    ],
)
def test_what_would_be_another_recipe_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=r'(?s)not with engine = "verl".*') as refusal:
        refuse_what_differs(recipe(**changes))
    assert said in str(refusal.value)


def test_a_plain_recipe_is_taken_and_told_what_is_otherwise() -> None:
    plain = recipe()
    refuse_what_differs(plain)
    refuse_what_differs(parse_settings(TrainRecipe, plain.model_dump(mode="json"), "run.json"))  # as it is resumed
    told = replacements(plain)
    assert any("n_async" in line for line in told)
    bonus = recipe(objective={"kind": "grpo", "entropy_coef": 7e-4})
    assert any("entropy bonus" in line for line in set(replacements(bonus)) - set(told))
    stages = {"stages": [{"steps": 3}, {"hard": True}]}
    refuse_what_differs(recipe(curriculum=stages, data={"kind": "curated", "folders": ("s",), "hard": True}))
    assert any("Each stage is a process" in line for line in replacements(recipe(curriculum=stages)))
