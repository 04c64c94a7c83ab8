"""On-policy distillation: its gradient by enumeration, GRPO with a teacher for unsolved groups, and whole runs."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from curation.policies.chat_templates import folder_stop_tokens
from curation.records import ConfigError
from tests.training.engines.embedded.test_run import small
from tests.training.optimisation.test_trainer import recipe, samples
from tests.training.students import student
from training.config import ComputeSettings
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Split
from training.engines.embedded.run import train
from training.evaluation.metrics import read_metrics
from training.objectives.base import CreditInputs, ObjectiveInputs
from training.objectives.credit import group_credit
from training.objectives.distil import RATIO_CAP, DistilSettings, distil_loss
from training.objectives.grpo import GrpoSettings, grpo_credit, grpo_decision, grpo_loss
from training.optimisation.distributed import DistributedContext
from training.optimisation.model import load_tokenizer
from training.optimisation.scoring import ReferencePolicy, require_same_tokens, with_teacher_scores
from training.optimisation.trainer import Trainer
from training.rewards import Reward
from training.rollouts.rollouts import RolloutRunner
from training.rollouts.tasks import load_tasks
from training.rollouts.verifiers import Verifiers
from training.stored.batches import shown_prompts
from training.stored.supply import stored_sources
from training.stored.tokens import TokenWriter

RIGHT, WRONG, FORMLESS = Reward(format=0.1, correctness=0.9, correct=True), Reward(format=0.1), Reward()


def every_token(logits: torch.Tensor, generator: torch.Tensor, teacher: torch.Tensor) -> ObjectiveInputs:
    """Each token once, as a sequence of its own, weighed by the chance that the generator draws it."""
    count = len(logits)
    zeros = torch.zeros(count, dtype=torch.float64)
    inputs = ObjectiveInputs(logits.log_softmax(-1), generator, torch.arange(count), zeros, generator.exp())
    return replace(inputs, teacher_logprobs=teacher)


def test_the_expected_gradient_is_that_of_the_reverse_kl() -> None:
    """Over all tokens of a small vocabulary, drawn by a policy near the one that learns."""
    draw = torch.Generator().manual_seed(1)
    logits = torch.randn(6, generator=draw, dtype=torch.float64).requires_grad_()
    noise = torch.randn(6, generator=draw, dtype=torch.float64)
    generator = (logits.detach() + 0.3 * noise).log_softmax(-1)
    teacher = torch.randn(6, generator=draw, dtype=torch.float64).log_softmax(-1)
    inputs = every_token(logits, generator, teacher)
    assert (inputs.logprobs - generator).exp().max() < RATIO_CAP
    loss, own = distil_loss(inputs, DistilSettings())
    (found,) = torch.autograd.grad(loss, logits)
    logprobs = logits.log_softmax(-1)
    (wanted,) = torch.autograd.grad((logprobs.exp() * (logprobs - teacher)).sum(), logits)
    torch.testing.assert_close(found, wanted, atol=1e-12, rtol=0)
    assert float(own["taught_share"].total) == 6
    untaught, own = distil_loss(every_token(logits, generator, torch.full_like(teacher, torch.nan)))
    assert torch.autograd.grad(untaught, logits)[0].abs().max() == 0
    assert float(own["taught_share"].total) == 0


def test_grpos_loss_is_its_own_and_the_teachers_term() -> None:
    draw = torch.Generator().manual_seed(2)
    logits, teacher = torch.randn(2, 5, generator=draw, dtype=torch.float64)
    taught = torch.tensor([True, True, False, False, False])
    inputs = every_token(logits, logits.log_softmax(-1), torch.where(taught, teacher.log_softmax(-1), torch.nan))
    inputs = replace(inputs, advantages=torch.tensor([0.0, 0.0, 1.0, -1.0, 0.5]).double())
    whole, own = grpo_loss(inputs, GrpoSettings(unsolved="model"))
    torch.testing.assert_close(whole, grpo_loss(inputs, GrpoSettings())[0] + distil_loss(inputs)[0])
    assert float(own["taught_share"].total / own["taught_share"].count) == pytest.approx(0.4)


def minibatch(rewards: Sequence[Reward]) -> CreditInputs:
    count = len(rewards)
    return CreditInputs(rewards, torch.full((count,), 5), torch.arange(count) // 2)


def test_unsolved_groups_go_to_the_teacher_and_change_no_advantage_of_the_others() -> None:
    settings, plain = GrpoSettings(unsolved="model"), GrpoSettings()
    for group in ([WRONG, WRONG], [WRONG, FORMLESS], [RIGHT, WRONG]):
        assert grpo_decision(group, settings).drop_reason is None
    assert grpo_decision([RIGHT, RIGHT], settings).drop_reason == "all_correct"
    assert grpo_decision([WRONG, WRONG], plain).drop_reason == "none_correct"
    made = grpo_credit(minibatch([WRONG, WRONG, RIGHT, WRONG, WRONG, FORMLESS, RIGHT, FORMLESS]), settings)
    alone = group_credit(minibatch([RIGHT, WRONG, RIGHT, FORMLESS]), plain)
    assert made.taught.tolist() == [True, True, False, False, True, True, False, False]
    assert made.advantages[~made.taught].tolist() == alone.advantages.tolist()
    assert made.advantages[made.taught].tolist() == [0.0] * 4
    assert made.token_weights.tolist() == [1 / 40] * 8


def taught_by(model: str) -> dict[str, Any]:
    return {"teacher": "teacher", "models": student()["models"] | {"teacher": {"kind": "torch", "model": model}}}


def test_a_teacher_is_asked_about_the_samples_that_name_a_prompt() -> None:
    made = recipe(packing={"micro_batch_tokens": 64}, objective={"kind": "distil"}, **taught_by("embedded"))
    ranks = DistributedContext(ComputeSettings())
    trainer = Trainer(WEIGHTS, made, ranks)
    teacher = ReferencePolicy(WEIGHTS, made, ranks, None, "teacher")
    trainer.ask(teacher=teacher)
    first, second, third = samples(3)
    other = [*first.prompt_ids, *first.prompt_ids]
    asked = [replace(first, teacher_prompt_ids=other), second, replace(third, teacher_prompt_ids=third.prompt_ids)]
    scored = with_teacher_scores(asked, teacher.scorer)
    direct = trainer.scorer.logprobs([replace(first, prompt_ids=other), third])
    assert scored[1].teacher_logprobs is None
    for one, wanted in zip((scored[0], scored[2]), direct, strict=True):
        assert one.teacher_logprobs == pytest.approx(wanted.tolist(), abs=1e-5)


@pytest.mark.slow
def test_a_run_follows_its_teacher_where_it_solves_nothing(tmp_path: Path, teacher: Path) -> None:
    changes = {"objective": {"kind": "grpo", "unsolved": "model"}, **taught_by(str(teacher / "model"))}
    changes |= {"collector": {"max_staleness": 0, "group_size": 4}, "evaluation": {"data": None}}
    train(small(**changes, steps=1, checks=False), Path(), tmp_path / "run")
    (row,) = read_metrics(tmp_path / "run")
    assert 0 < row["policy/taught_share"] < 1
    assert row["policy/gradient_norm"] > 0


@pytest.mark.parametrize(
    ("table", "refusal"),
    [
        ({"objective": {"kind": "distil"}}, "needs a teacher with these settings"),
        (taught_by("embedded"), "asks none with these settings"),
        ({"objective": {"kind": "distil", "teacher": "attempts"}}, "data.kind = embedded has none"),
        ({"objective": {"kind": "distil"}, "engine": "verl", **taught_by("embedded")}, "verl's loop has none"),
    ],
)
def test_a_recipe_without_its_teacher_is_refused(table: dict[str, Any], refusal: str) -> None:
    with pytest.raises(ValidationError, match=refusal):
        recipe(**table)


def test_the_model_as_its_own_teacher_reads_a_correct_attempt(teacher: Path) -> None:
    made = small()
    tasks, tokenizer = load_tasks(made.data, Split.TRAIN, Path()), load_tokenizer(WEIGHTS)
    with Verifiers(tuple(tasks.values()), 1, made.rewards) as verifiers:
        rollouts = RolloutRunner(tokenizer, made.solving_prompt, verifiers, made.rewards, 0, made.tags)
        writer = TokenWriter(tokenizer, folder_stop_tokens(WEIGHTS, tokenizer), made.tags)
        sources = stored_sources((str(teacher),), made.data, Path())
        with pytest.raises(ConfigError, match="the chat template drops what follows"):  # the shipped model's does
            asyncio.run(shown_prompts(sources, tasks, rollouts, writer, 0))
        tokenizer.chat_template = tokenizer.chat_template.replace(".split('\\n\\n')[0]", "")
        rollouts = RolloutRunner(tokenizer, made.solving_prompt, verifiers, made.rewards, 0, made.tags)
        prompts = asyncio.run(shown_prompts(sources, tasks, rollouts, writer, 0))
    assert 0 < len(prompts) <= len(tasks)
    for name, prompt in prompts.items():
        statement, _, solution = tokenizer.decode(prompt).partition("A correct solution of this problem")
        assert tasks[name].request.statement in statement
        assert str(tasks[name].reference_answer) in solution
        assert not any(tag in solution for tag in (made.tags.open, made.tags.close))


def test_a_teacher_with_other_tokens_is_refused(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(WEIGHTS)
    tokenizer.add_tokens(["<more>"])
    shutil.copytree(WEIGHTS, tmp_path, dirs_exist_ok=True)
    tokenizer.save_pretrained(tmp_path)
    require_same_tokens(WEIGHTS, WEIGHTS)
    with pytest.raises(ConfigError, match="take a teacher of the same family"):
        require_same_tokens(tmp_path, WEIGHTS)
