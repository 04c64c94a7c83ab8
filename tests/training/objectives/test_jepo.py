"""JEPO by enumeration: four chains, an answer that is said with a probability behind each."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import polars as pl
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from tests.training.engines.embedded.test_run import lines, small
from tests.training.optimisation.test_trainer import recipe
from training.embedded_model.problems import Split
from training.engines.embedded.run import train
from training.evaluation.metrics import read_metrics
from training.objectives.base import CreditInputs, ObjectiveInputs
from training.objectives.jepo import JepoSettings, jepo_credit, jepo_decision, jepo_loss, jepo_weights
from training.recipe import LatentData, TrainRecipe
from training.rewards import Reward
from training.rollouts.tasks import load_tasks

EXACT = JepoSettings(normalise_weights=False, supervised=1.0, form_penalty=0.0)
KEPT, BROKEN = Reward(format=0.1), Reward(format_error="no </think>")


def policy() -> tuple[Tensor, Tensor]:
    """Logits of four chains, and of the answer behind each."""
    chains = torch.tensor([0.3, -0.5, 1.1, 0.0], dtype=torch.float64, requires_grad=True)
    answers = torch.tensor([-1.0, 0.7, -2.0, 1.5], dtype=torch.float64, requires_grad=True)
    return chains, answers


def bound(chains: Tensor, answers: Tensor, n: int) -> Tensor:
    """E log (1/n) sum of p over n drawn chains, with its gradient."""
    probabilities, logs = chains.softmax(0), torch.nn.functional.logsigmoid(answers)
    total = torch.zeros((), dtype=torch.float64)
    for drawn in itertools.product(range(4), repeat=n):
        total = total + probabilities[list(drawn)].prod() * (logs[list(drawn)].logsumexp(0) - math.log(n))
    return total


def inputs_of(chains: Tensor, answers: Tensor, drawn: tuple[int, ...], settings: JepoSettings) -> ObjectiveInputs:
    """One group: a token of the chain and a token of the text each, on policy."""
    places = list(drawn)
    of_chain, of_text = chains.log_softmax(0)[places], torch.nn.functional.logsigmoid(answers)[places]
    n = len(places)
    weights = jepo_weights(torch.ones(n).double(), of_text.detach(), torch.zeros(n), settings)
    logprobs = torch.stack([of_chain, of_text], dim=1).flatten()
    return ObjectiveInputs(
        logprobs,
        logprobs.detach(),
        torch.arange(n).repeat_interleave(2),
        weights[:, 0],
        torch.ones(n).double(),
        answer=torch.tensor([False, True] * n),
        answer_weights=weights[:, 1],
    )


@pytest.mark.parametrize("n", [2, 3])
def test_the_mean_over_all_groups_is_the_gradient_of_the_bound(n: int) -> None:
    chains, answers = policy()
    exact = torch.autograd.grad(bound(chains, answers, n), (chains, answers))
    expected = [torch.zeros(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)]
    for drawn in itertools.product(range(4), repeat=n):
        probability = float(chains.detach().softmax(0)[list(drawn)].prod())
        found = torch.autograd.grad(jepo_loss(inputs_of(chains, answers, drawn, EXACT), EXACT)[0], (chains, answers))
        expected = [total - probability * part for total, part in zip(expected, found, strict=True)]
    for mine, theirs in zip(expected, exact, strict=True):
        assert torch.allclose(mine, theirs, atol=1e-12)


def test_the_bound_gets_tighter_with_more_chains() -> None:
    chains, answers = (value.detach() for value in policy())
    bounds = [float(bound(chains, answers, n)) for n in (1, 2, 3, 4)]
    marginal = float((chains.softmax(0) * answers.sigmoid()).sum().log())
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1] < marginal


def test_two_passes_are_one_graph() -> None:
    chains, answers = policy()
    drawn = (0, 2, 3)
    found = torch.autograd.grad(jepo_loss(inputs_of(chains, answers, drawn, EXACT), EXACT)[0], answers)[0]
    f = torch.nn.functional.logsigmoid(answers)[list(drawn)].logsumexp(0)
    assert torch.allclose(found, -torch.autograd.grad(f, answers)[0], atol=1e-12)


def test_groups_may_lie_in_any_order_and_texts_may_be_long() -> None:
    values = torch.tensor([-700.0, -1.0, -702.0, -3.0, -699.0], dtype=torch.float64)
    groups = torch.tensor([0, 1, 0, 1, 0])
    together = jepo_weights(torch.ones(5).double(), values, groups, EXACT)
    assert torch.isfinite(together).all()
    for number in (0, 1):
        own = groups == number
        alone = jepo_weights(torch.ones(int(own.sum())).double(), values[own], groups[own], EXACT)
        assert torch.allclose(together[own], alone)
    for number in (0, 1):
        assert float(together[groups == number, 1].sum()) == pytest.approx(1.0)


def test_the_papers_practice_bounds_the_weights() -> None:
    values = torch.tensor([-1.0, -1.1, -40.0, -1.2], dtype=torch.float64)
    weights = jepo_weights(torch.ones(4).double(), values, torch.zeros(4), JepoSettings())
    assert weights[:, 0].abs().max() <= 1
    assert weights[2, 0] == weights[:, 0].min()
    assert float(weights[:, 1].sum()) == pytest.approx(1e-2)


def test_a_chain_that_never_ends_loses_and_has_no_text() -> None:
    kept = torch.tensor([1.0, 0.0, 1.0]).double()
    weights = jepo_weights(kept, torch.tensor([-1.0, 0.0, -1.0]).double(), torch.zeros(3), JepoSettings())
    assert weights[1].tolist() == [-1.0, 0.0]
    assert weights[0, 0] > 0
    assert jepo_decision([KEPT, BROKEN, KEPT], JepoSettings()).drop_reason is None
    assert jepo_decision([KEPT, BROKEN, BROKEN], JepoSettings()).drop_reason == "too_few_chains"
    credit = jepo_credit(CreditInputs([KEPT, BROKEN], torch.tensor([3, 3]), torch.tensor([0, 1])), JepoSettings())
    assert (credit.advantages.tolist(), credit.token_weights.tolist()) == ([1.0, 0.0], [0.5, 0.5])


@pytest.fixture
def dropped(tmp_path: Path) -> Path:
    """A set that dropped a proof with a solution, an answer in words, and what is no latent problem."""
    rows = [
        ("proof", "a", "What is 3 + 4?", None, "3 + 4 = 7"),
        ("textual_answer", "b", "What is 2 + 5?", "7", None),
        ("proof", "c", "What is 9 + 1?", None, None),
        ("too_easy", "d", "What is 1 + 1?", "2", None),
        ("textual_answer", "b", "What is 2 + 5?", "7", None),
    ]
    shared = {"group": None, "domain": "math", "lang": "en", "meta": None}
    names = ("reason", "id", "statement", "answer", "solution")
    table = [shared | dict(zip(names, row, strict=True)) for row in rows]
    (tmp_path / "dropped").mkdir()
    pl.DataFrame(table, infer_schema_length=None).write_parquet(tmp_path / "dropped" / "dropped-0.parquet")
    return tmp_path


def test_latent_problems_are_those_dropped_with_a_text(dropped: Path) -> None:
    tasks = load_tasks(LatentData(kind="latent", folders=(str(dropped),)), Split.TRAIN, Path())
    assert {name: task.reference_text for name, task in tasks.items()} == {"a": "3 + 4 = 7", "b": "7"}


def test_the_drawn_thoughts_are_trained_on_and_the_text_behind_them_is_scored(dropped: Path, tmp_path: Path) -> None:
    table = recipe(collector={"max_staleness": 0, "group_size": 4, "n_async": 8, "n_batch": 8}).model_dump()
    table |= {"steps": 4, "max_tokens": 60, "checks": False, "logged_rollouts": 0}
    table |= {"objective": {"kind": "jepo", "supervised": 1.0}, "data": {"kind": "latent", "folders": (str(dropped),)}}
    made = TrainRecipe.model_validate(table)
    train(made, Path(), tmp_path / "run")
    rows = read_metrics(tmp_path / "run")
    assert len(rows) == 4
    assert rows[-1]["policy/answer_logprob"] > rows[0]["policy/answer_logprob"]
    judged = lines(tmp_path / "run" / "attempts.jsonl")
    assert {row["outcome"] for row in judged} == {None}
    assert {row["method"] for row in judged} <= {"reference", "no </think>"}


def test_jepo_and_latent_data_go_together(dropped: Path) -> None:
    with pytest.raises(ValidationError, match="jepo trains on latent data"):
        small(objective={"kind": "jepo"})
