"""A recipe compiled for verl, what is refused, and what comes back: groups decided once, losses, metrics."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch

from curation.config.loading import parse_settings
from curation.records import ConfigError, Domain, PromptRequest
from tests.training.engines.embedded.test_run import lines
from tests.training.students import student
from tests.training.students import verl_recipe as recipe
from training.engines.placement import VerlPlacement, place_verl
from training.engines.verl.configuration import (
    RECIPE_VARIABLE,
    compile_recipe,
    refuse_what_differs,
    replacements,
    run_facts,
    steps_file,
)
from training.engines.verl.following import MetricsFollower, our_metrics
from training.engines.verl.groups import GroupLedger, JudgedRollout, reward_fields
from training.engines.verl.stages import STATE
from training.engines.verl.tensors import micro_batch_loss, weighted_advantages
from training.evaluation.metrics import read_metrics
from training.objectives.grpo import GrpoSettings
from training.recipe import TrainRecipe
from training.rewards import Reward
from training.rollouts.curriculum import CurriculumController
from training.rollouts.tasks import TrainingTask

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
        ({"objective": {"kind": "soft"}}, "needs a second pass or has no groups"),
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


RIGHT, WRONG = Reward(0.1, 0.9, correct=True), Reward(0.1)
FAILED = Reward(excluded_by="timeout")
TASKS = {name: TrainingTask(PromptRequest(name, f"What is {name}?", Domain.MATH, "en"), "1") for name in "abcdefgh"}


def rollout(reward: Reward, answer: str = "1") -> JudgedRollout:
    told = reward_fields(reward, {"outcome": None, "method": "m", "answer": answer, "finish": "stop", "tokens": 5})
    return JudgedRollout.of(json.loads(json.dumps(told)), oldest=2, newest=3)  # it travels between processes


def test_a_group_is_decided_and_logged_once(tmp_path: Path) -> None:
    mixed = [rollout(reward) for reward in (RIGHT, WRONG, FAILED)]
    with closing(GroupLedger(recipe(), TASKS, tmp_path)) as ledger:
        assert ledger.decide("x", "a", mixed, 4).drop_reason is None
        assert ledger.decide("x", "a", mixed, 4).exclusion_reasons == (None, None, "timeout")
        assert ledger.decide("y", "b", [rollout(RIGHT)] * 3, 4).drop_reason == "all_correct"
        metrics = ledger.after_step(4)
        assert ledger.after_step(4) == {}
    wanted = {"sampled/attempts": 6.0, "sampled/excluded": 1.0, "dropped/all_correct": 3.0, "sampled/pass_rate": 4 / 5}
    wanted |= {"sampled/some": 0.5, "sampled/all": 0.5, "length/sampled_mean": 5.0}
    assert metrics.items() >= wanted.items()
    rows = lines(tmp_path / "attempts.jsonl")
    places = [(row["group"], row["index"], row["problem"]) for row in rows[:4]]
    assert places == [(0, 0, "a"), (0, 1, "a"), (0, 2, "a"), (1, 0, "b")]
    assert (rows[0]["step"], rows[0]["oldest"], rows[0]["newest"], rows[2]["excluded"]) == (3, 2, 3, "timeout")
    assert rows[0]["reward"]["total"] == 1.0


def test_problems_come_in_the_curriculums_order_and_easy_ones_retire(tmp_path: Path) -> None:
    made = recipe(curriculum={})
    with closing(GroupLedger(made, TASKS, tmp_path)) as ledger:
        alone = CurriculumController(made, TASKS)
        names = list(TASKS)
        assert [names[ledger.draw()] for _ in range(8)] == [alone.draw_problem() for _ in range(8)]
        for number in range(8):
            ledger.decide(str(number), "a", [rollout(RIGHT)] * 16, 1)
        ledger.after_step(1)
        assert ledger.curriculum.pool_sizes()["retired"] == 1
    assert "retired" in (tmp_path / "changes.jsonl").read_text()


def test_a_group_that_waits_in_verls_queue_over_a_kill_is_decided_once(tmp_path: Path) -> None:
    mixed = [rollout(RIGHT), rollout(WRONG)]
    with closing(GroupLedger(recipe(), TASKS, tmp_path)) as first:
        for name in ("trained", "waits", "dropped"):
            first.decide(name, "a", [rollout(RIGHT)] * 2 if name == "dropped" else mixed, 1)
        first.keep({"waits", "dropped"})
        first.save(1, tmp_path)
        state = json.loads((tmp_path / STATE).read_text())
    with closing(GroupLedger(recipe(), TASKS, tmp_path)) as again:
        again.restore(state)
        assert again.decide("waits", "a", mixed, 2).drop_reason is None
        assert again.decide("dropped", "a", mixed, 2).drop_reason == "all_correct"
        assert set(again.state()["decided"]) == {"waits", "dropped"}
        assert again.state()["groups"] == 3
        again.keep({"new"})
        assert again.state()["decided"] == {}
    assert len(lines(tmp_path / "attempts.jsonl")) == 6


def batch() -> tuple[torch.Tensor, torch.Tensor, list[str]]:
    """Two groups of two; the last row is padding."""
    mask = torch.tensor([[1, 1, 1], [1, 0, 0], [1, 1, 0], [1, 1, 0], [0, 0, 0]])
    rewards = torch.tensor([[0, 0, 1.0], [0.0, 0, 0], [0, 0.5, 0], [0, 0.1, 0], [0, 0, 0]])
    return rewards, mask, ["a", "a", "b", "b", "padding"]


def test_advantages_by_hand_with_the_papers_weights() -> None:
    rewards, mask, groups = batch()
    settings = GrpoSettings(advantage_normalisation="none")
    folded = weighted_advantages(rewards, mask, groups, settings, max_tokens=9)
    # group a: ±.5 over 4 tokens of one of 2 groups; group b: ±.2 over 4 tokens
    assert folded[:, 0].tolist() == pytest.approx([0.5 / 8, -0.5 / 8, 0.2 / 8, -0.2 / 8, 0.0])
    assert torch.equal(folded != 0, mask.bool())


def test_what_was_cut_off_weighs_nothing_and_minibatches_have_their_own_means() -> None:
    rewards, mask, groups = batch()
    settings = GrpoSettings(preset="dapo", advantage_normalisation="none")
    folded = weighted_advantages(rewards, mask, groups, settings, max_tokens=3)
    assert folded[0].tolist() == [0.0, 0.0, 0.0]
    assert float(folded[1, 0]) == pytest.approx(-0.5 / 5)  # one of the minibatch's five tokens that are left
    twice = weighted_advantages(rewards, mask, groups, settings, max_tokens=3, minibatches=2)
    assert torch.equal(twice, 2 * folded)


def test_the_loss_is_the_sum_over_micro_batches_and_leaves_impossible_tokens_out() -> None:
    rewards, mask, groups = batch()
    settings = GrpoSettings()
    folded = weighted_advantages(rewards, mask, groups, settings, max_tokens=9)
    chance = torch.Generator().manual_seed(1)
    logprobs = -torch.rand(mask.shape, generator=chance) - 0.1
    drawn = logprobs + 0.3 * torch.randn(mask.shape, generator=chance)
    drawn = drawn.clamp(max=0)

    def loss(places: list[int], generator: torch.Tensor) -> float:
        parts = logprobs[places].clone().requires_grad_()
        value, told = micro_batch_loss(parts, generator[places], folded[places], mask[places], settings)
        value.backward()
        assert set(told) >= {"clip_low", "clip_high"}
        assert torch.equal(parts.grad[~mask[places].bool()], torch.zeros(int((mask[places] == 0).sum())))
        return float(value.detach())

    whole = loss([0, 1, 2, 3, 4], drawn)
    assert whole == pytest.approx(loss([0, 4], drawn) + loss([1, 2, 3], drawn), rel=1e-5)
    broken = drawn.clone()
    broken[0, 1] = -9999.0
    assert loss([0], broken) != loss([0], drawn)
    assert abs(loss([0], broken)) < 10


def test_names_are_ours_and_all_of_verls_stay() -> None:
    row = our_metrics(
        {
            "critic/score/mean": 0.5,
            "actor/goldilocks/policy/clip_low": 0.1,
            "goldilocks/sampled/pass_rate": 0.25,
            "val-core/goldilocks/acc/mean@4": 0.75,
            "timing_s/step": 2,
            "note": "text",
            "perf/mfu/actor": float("nan"),
        }
    )
    assert row["reward/total"] == 0.5
    assert (row["policy/clip_low"], row["sampled/pass_rate"], row["evaluation/pass_rate"]) == (0.1, 0.25, 0.75)
    assert (row["speed/step_s"], row["verl/timing_s/step"]) == (2.0, 2.0)
    assert "speed/peak_share" not in row


def written(out: Path, begun_at: int, *lines: str) -> None:
    file = steps_file(out, begun_at)
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(lines))


def test_rows_are_taken_whole_and_each_step_once(tmp_path: Path) -> None:
    line = json.dumps({"step": 1, "data": {"critic/score/mean": 0.5}}) + "\n"
    with MetricsFollower(tmp_path, 5, 0) as follower:
        follower.follow()
        written(tmp_path, 0, line, '{"step": 2, "da')
        follower.follow()
        assert [row["step"] for row in read_metrics(tmp_path)] == [1]
        written(tmp_path, 0, line, '{"step": 2, "data": {}}\n{"step": 3, "data": {}}\n')
    assert [row["step"] for row in read_metrics(tmp_path)] == [1, 2, 3]
    with MetricsFollower(tmp_path, 5, 2):  # the checkpoint is of step 2
        written(tmp_path, 2, '{"step": 3, "data": {"critic/score/mean": 1}}\n')
    rows = read_metrics(tmp_path)
    assert [row["step"] for row in rows] == [1, 2, 3]
    assert rows[-1]["reward/total"] == 1.0
    with MetricsFollower(tmp_path, 5, 4):  # killed between step 4's checkpoint and its line
        written(tmp_path, 4, '{"step": 4, "data": {"val-core/goldilocks/acc/mean@4": 1}}\n')
    assert read_metrics(tmp_path)[-1]["evaluation/pass_rate"] == 1.0


def test_what_verl_wrote_after_the_last_look_of_a_killed_run_is_taken_over(tmp_path: Path) -> None:
    rows = [json.dumps({"step": step, "data": {"actor/lr": step}}) + "\n" for step in range(4)]
    with MetricsFollower(tmp_path, 5, 0):
        written(tmp_path, 0, rows[0])
    written(tmp_path, 0, *rows)  # killed here: step 2 is saved, and 3 is lost with what came after
    with MetricsFollower(tmp_path, 5, 2):
        written(tmp_path, 2, '{"step": 2, "data": {}}\n{"step": 3, "data": {"actor/lr": 7}}\n')
    told = [(row["step"], row.get("policy/learning_rate")) for row in read_metrics(tmp_path)]
    assert told == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 7.0)]
