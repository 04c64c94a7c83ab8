"""Objectives that score attempts in a second pass, by enumeration and in runs: distillation by a teacher, and JEPO."""

from __future__ import annotations

import asyncio
import itertools
import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from curation.policies.chat_templates import folder_stop_tokens
from curation.records import ConfigError
from tests.training.engines.embedded.test_run import lines, small
from tests.training.optimisation.test_trainer import recipe, samples
from tests.training.students import student
from training.config import ComputeSettings
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Split, generate_exercises
from training.engines.embedded.run import train
from training.evaluation.metrics import read_metrics
from training.objectives.base import CreditInputs, ObjectiveInputs, ScoredGroups
from training.objectives.credit import group_credit
from training.objectives.distil import RATIO_CAP, DistilSettings, distil_loss
from training.objectives.grpo import GrpoSettings, grpo_credit, grpo_decision, grpo_loss
from training.objectives.jepo import JepoSettings, jepo_credit, jepo_decision, jepo_loss, jepo_weights
from training.optimisation.distributed import DistributedContext
from training.optimisation.model import load_tokenizer
from training.optimisation.scoring import ReferencePolicy, require_same_tokens, with_teacher_scores
from training.optimisation.trainer import Trainer
from training.recipe import CuratedData, TrainRecipe
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
        ({"objective": {"kind": "distil"}, "engine": "verl", **taught_by("embedded")}, "which verl does not run"),
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


EXACT = JepoSettings(supervised=1.0)
"""With these, weights are neither normalised nor penalised."""

KEPT, BROKEN = Reward(format=0.1), Reward(format_error="no </think>")


def policy() -> tuple[Tensor, Tensor]:
    """Logits of four chains, and of the answer behind each."""
    values = torch.tensor([[0.3, -0.5, 1.1, 0.0], [-1.0, 0.7, -2.0, 1.5]], dtype=torch.float64)
    return values[0].requires_grad_(), values[1].requires_grad_()


def weigh(kept: Tensor, answers: Tensor, groups: Tensor, settings: JepoSettings) -> Tensor:
    """[sequences, 2]: the weights of chains, and of their texts."""
    scored = ScoredGroups(kept, answers, groups)
    exact: Any = {"form_penalty": 0, "normalise": False} if settings is EXACT else {}
    made = jepo_weights(scored, settings, **exact)
    return torch.stack([made.advantages, made.answer_weights], dim=1)


def bound(chains: Tensor, answers: Tensor, n: int) -> Tensor:
    """E log (1/n) sum of p over n drawn chains, with its gradient."""
    probabilities, logs = chains.softmax(0), torch.nn.functional.logsigmoid(answers)
    groups = [list(drawn) for drawn in itertools.product(range(4), repeat=n)]
    worth = [probabilities[drawn].prod() * (logs[drawn].logsumexp(0) - math.log(n)) for drawn in groups]
    return torch.stack(worth).sum()


def inputs_of(chains: Tensor, answers: Tensor, drawn: tuple[int, ...]) -> ObjectiveInputs:
    """One group: a token of the chain and a token of the text each, on policy."""
    places, n = list(drawn), len(drawn)
    of_chain, of_text = chains.log_softmax(0)[places], torch.nn.functional.logsigmoid(answers)[places]
    gains, answer_weights = weigh(torch.ones(n).double(), of_text.detach(), torch.zeros(n), EXACT).unbind(1)
    logprobs, index = torch.stack([of_chain, of_text], dim=1).flatten(), torch.arange(n).repeat_interleave(2)
    inputs = ObjectiveInputs(logprobs, logprobs.detach(), index, gains, torch.ones(n).double())
    return replace(inputs, answer=torch.tensor([False, True] * n), answer_weights=answer_weights)


def test_the_mean_over_all_groups_is_the_gradient_of_the_bound() -> None:
    n = 3
    chains, answers = policy()
    exact = torch.autograd.grad(bound(chains, answers, n), (chains, answers))
    expected = [torch.zeros(4).double()] * 2
    for drawn in itertools.product(range(4), repeat=n):
        probability = float(chains.detach().softmax(0)[list(drawn)].prod())
        loss, _ = jepo_loss(inputs_of(chains, answers, drawn), EXACT, kl_coef=0.0)
        found = torch.autograd.grad(loss, (chains, answers))
        expected = [total - probability * part for total, part in zip(expected, found, strict=True)]
    for mine, theirs in zip(expected, exact, strict=True):
        assert torch.allclose(mine, theirs, atol=1e-12)


def test_the_kl_term_is_that_of_the_chains_summed_as_the_other_terms_are() -> None:
    chains, answers = policy()
    reference = torch.tensor([0.1, 0.4, -0.3, 0.8], dtype=torch.float64).log_softmax(0)
    own = chains.log_softmax(0)
    (exact,) = torch.autograd.grad(2 * 0.25 * (own.exp() * (own - reference)).sum(), chains)
    expected = torch.zeros(4, dtype=torch.float64)
    for drawn in itertools.product(range(4), repeat=2):
        probability = float(chains.detach().softmax(0)[list(drawn)].prod())
        inputs = inputs_of(chains, answers, drawn)
        of_reference = torch.stack([reference[list(drawn)], torch.full((2,), -9.0).double()], dim=1).flatten()
        inputs = replace(inputs, reference_logprobs=of_reference)
        term = jepo_loss(inputs, EXACT, kl_coef=0.25)[0] - jepo_loss(inputs, EXACT, kl_coef=0.0)[0]
        expected += probability * torch.autograd.grad(term, chains)[0]
    assert torch.allclose(expected, exact, atol=1e-12)
    with pytest.raises(ValueError, match="reference"):
        jepo_loss(inputs_of(chains, answers, (0, 1)), EXACT, kl_coef=0.25)


def test_groups_may_lie_in_any_order_and_texts_may_be_long() -> None:
    values = torch.tensor([-700.0, -1.0, -702.0, -3.0, -699.0], dtype=torch.float64)
    groups = torch.tensor([0, 1, 0, 1, 0])
    together = weigh(torch.ones(5).double(), values, groups, EXACT)
    assert torch.isfinite(together).all()
    for number in (0, 1):
        own = groups == number
        alone = weigh(torch.ones(int(own.sum())).double(), values[own], groups[own], EXACT)
        assert torch.allclose(together[own], alone)
        assert float(together[own, 1].sum()) == pytest.approx(1.0)


def test_weights_are_bounded_and_a_chain_that_never_ends_loses_and_has_no_text() -> None:
    values = torch.tensor([-1.0, -1.1, -40.0, -1.2], dtype=torch.float64)
    bounded = weigh(torch.ones(4).double(), values, torch.zeros(4), JepoSettings())  # as the paper does it
    assert bounded[:, 0].abs().max() <= 1
    assert bounded[2, 0] == bounded[:, 0].min()
    assert float(bounded[:, 1].sum()) == pytest.approx(1e-2)
    kept = torch.tensor([1.0, 0.0, 1.0]).double()
    weights = weigh(kept, torch.tensor([-1.0, 0.0, -1.0]).double(), torch.zeros(3), JepoSettings())
    assert weights[1].tolist() == [-1.0, 0.0]
    assert weights[0, 0] > 0
    assert jepo_decision([KEPT, BROKEN, KEPT], JepoSettings()).drop_reason is None
    assert jepo_decision([KEPT, BROKEN, BROKEN], JepoSettings()).drop_reason == "too_few_chains"
    inputs = CreditInputs([KEPT, BROKEN], torch.tensor([3, 3]), torch.tensor([0, 1]), has_text=[True, False])
    credit = jepo_credit(inputs, JepoSettings())
    assert (credit.advantages.tolist(), credit.token_weights.tolist()) == ([1.0, 0.0], [0.5, 0.5])


def latent(folder: Path, rows: list[dict[str, Any]]) -> dict[str, Any]:
    shared = {"group": None, "domain": "math", "lang": "en", "meta": None, "reason": "proof", "solution": None}
    (folder / "dropped").mkdir(parents=True)
    table = [shared | row for row in rows]
    pl.DataFrame(table, infer_schema_length=None).write_parquet(folder / "dropped" / "dropped-0.parquet")
    return {"kind": "latent", "folders": (str(folder),)}


def test_latent_problems_are_those_dropped_with_a_text(tmp_path: Path) -> None:
    words = {"reason": "textual_answer", "id": "b", "statement": "What is 2 + 5?", "answer": "7"}
    rows = [
        {"id": "a", "statement": "What is 3 + 4?", "answer": None, "solution": "3 + 4 = 7"},
        words,
        {"id": "c", "statement": "What is 9 + 1?", "answer": None},
        {"reason": "too_easy", "id": "d", "statement": "What is 1 + 1?", "answer": "2"},
        words,
    ]
    tasks = load_tasks(CuratedData.model_validate(latent(tmp_path, rows)), Split.TRAIN, Path())
    assert {name: task.reference_text for name, task in tasks.items()} == {"a": "3 + 4 = 7", "b": "7"}


@pytest.mark.slow
def test_texts_of_other_sets_are_not_trained_on_and_say_how_likely_thoughts_make_them(tmp_path: Path) -> None:
    rows = [
        {"id": item.id, "statement": item.statement, "answer": f"It is {item.answer}"}
        for item in islice(generate_exercises(4, Split.TRAIN), 30)
    ]
    data, asked = latent(tmp_path / "set", rows[:20]), latent(tmp_path / "other", rows[20:])
    sizes = {"max_staleness": 0, "group_size": 4, "n_async": 8, "n_batch": 8}
    changes = {"objective": {"kind": "jepo", "supervised": 1.0}, "optim": {"learning_rate": 3e-3, "warmup_steps": 0}}
    made = small(steps=2, collector=sizes, checks=False, evaluation={"data": None}).model_dump() | changes
    made |= {"data": data, "evaluation": {"data": asked, "attempts": 2, "every": 2}}
    train(TrainRecipe.model_validate(made), Path(), tmp_path / "run")
    told = {row["step"]: row for row in read_metrics(tmp_path / "run") if "evaluation/answer_logprob" in row}
    assert set(told) == {0, 2}
    for row in told.values():
        assert row["evaluation/rollouts"] == 2 * 10
        assert row["evaluation/low"] < row["evaluation/answer_logprob"] < row["evaluation/high"]
    assert told[2]["evaluation/answer_logprob"] > told[0]["evaluation/answer_logprob"]  # it learns how texts begin
    judged = lines(tmp_path / "run" / "attempts.jsonl")
    assert {row["problem"] for row in judged} <= {row["id"] for row in rows[:20]}
    assert {(row["outcome"], row["method"]) for row in judged} <= {(None, "reference"), (None, "no </think>")}


@pytest.mark.parametrize(
    ("folder", "more", "said"),
    [("a", {}, "are also trained on"), ("b", {"keep_best": True}, "keep_best chooses by pass@1")],
)
def test_texts_that_would_be_asked_and_trained_on_are_refused(folder: str, more: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match="jepo trains on latent data"):
        small(objective={"kind": "jepo"})
    data = {"kind": "latent", "folders": ("a",)}
    table = small(evaluation={"data": None}).model_dump() | {"objective": {"kind": "jepo"}, "data": data}
    with pytest.raises(ValidationError, match=said):
        TrainRecipe.model_validate(table | {"evaluation": {"data": {**data, "folders": (folder,)}, **more}})
