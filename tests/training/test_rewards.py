"""Rewards: the form, the amounts, the length penalty, what is never scored, and components of the user's own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from curation.config.loading import parse_settings
from curation.records import ConfigError, Domain, Outcome
from curation.thinking import THINK, ThinkingTags
from training.config import RewardSettings
from training.own_rewards import RewardError
from training.rewards import Reward, RewardInputs, compute_reward, format_error, length_penalty

SETTINGS = RewardSettings(max_length=1000, length_cache=200)
GOOD = "<think>We add two and two, which makes four.</think>The sum of both is \\boxed{4}."
FRENCH = "Quelle est la somme de deux et deux ?"
PROGRAM = "<think>print it</think>Here:\n```python\nprint(4)\n```\n"


def judged(
    text: str = GOOD,
    outcome: Outcome | None = Outcome.CORRECT,
    *,
    tokens: int = 10,
    domain: Domain = Domain.MATH,
    passed: float | None = None,
    problem: str = "What is the sum of two and two?",
) -> RewardInputs:
    return RewardInputs(domain, problem, text, tokens, outcome, passed)


@pytest.mark.parametrize(
    ("text", "domain", "kept"),
    [
        (GOOD, Domain.MATH, True),
        ("<think></think>\\boxed{4}", Domain.MATH, True),
        ("Sure. " + GOOD, Domain.MATH, False),
        ("<think>so \\boxed{4}</think>It is 4.", Domain.MATH, False),  # the box is in the thoughts
        ("<think>a</think>\\boxed{4", Domain.MATH, False),  # cut off
        ("<think>a</think>b</think>\\boxed{4}", Domain.MATH, False),
        ("<think>a</think>The answer is 4.", Domain.MATH, False),  # the verifier's fall-backs are not the form
        (PROGRAM, Domain.CODE, True),
        ("<think>a</think>\n```c++\nint main(){}\n```", Domain.CODE, True),
        ("<think>a</think>\n```\nprint(4)\n```", Domain.CODE, False),  # no language
        ("<think>a</think>\n```\na\n```\n\n```python\nprint(4)\n```", Domain.CODE, True),  # one has a name
        ("<think>a</think>\n```python\n\n```", Domain.CODE, False),  # nothing is in it
        ("<think>a</think>\n1. So:\n\n     ```python\n     print(4)\n     ```", Domain.CODE, True),  # in a list
        ("<think>a</think>\n```\na\n```python", Domain.CODE, False),  # that fence closes nothing and opens nothing
        ("<think>a</think>\n```python\nprint(4)", Domain.CODE, False),  # cut off
        ("<think>```python\nprint(4)\n```</think>done", Domain.CODE, False),
        ("<think>a</think>Run ```python print(4)``` now", Domain.CODE, False),
    ],
)
def test_the_form(text: str, domain: Domain, kept: bool) -> None:
    assert (format_error(text, domain) is None) is kept


MISTRAL, DIRECT = ThinkingTags.of("[THINK]"), ThinkingTags.of("none")


@pytest.mark.parametrize(
    ("text", "tags", "error"),
    [
        ("[THINK]a[/THINK]\\boxed{4}", MISTRAL, None),
        ("<think>a</think>\\boxed{4}", MISTRAL, "does not start with [THINK]"),
        ("[THINK]a[THINK][/THINK]\\boxed{4}", MISTRAL, "2 [THINK] and 1 [/THINK]"),
        ("[THINK]\\boxed{4}[/THINK]4", MISTRAL, "no boxed answer after [/THINK]"),
        ("[THINK]a </think> b[/THINK]\\boxed{4}", MISTRAL, None),
        ("<think>\n\n</think>\n\n\\boxed{4}", THINK, None),  # the template wrote the tags
        ("\\boxed{4}", DIRECT, None),
        ("It is 4.", DIRECT, "no boxed answer"),
        ("", DIRECT, "no boxed answer"),
    ],
)
def test_the_form_in_the_models_own_tags(text: str, tags: ThinkingTags, error: str | None) -> None:
    assert format_error(text, Domain.MATH, tags) == error


def test_the_end_of_a_finished_rollout_closes_an_open_block() -> None:
    text = "```python\nprint(4)"
    ends = [format_error(text, Domain.CODE, DIRECT, finish) for finish in ("stop", "length", None)]
    assert ends == [None, "no finished code block", "no finished code block"]


@pytest.mark.parametrize(
    ("asked", "amounts"),
    [
        ({}, (0.1, 0.9, 0.0, 0.1)),
        ({"outcome": Outcome.WRONG}, (0.1, 0.0, 0.0, 0.1)),
        ({"outcome": Outcome.NO_ANSWER}, (0.0, 0.0, 0.0, 0.0)),
        ({"problem": FRENCH}, (0.1, 0.9, 0.0, 0.0)),
        ({"outcome": Outcome.WRONG, "tokens": 5000, "problem": FRENCH}, (0.1, 0.0, -0.1, 0.0)),
    ],
)
def test_the_amounts_of_the_paper(asked: dict[str, Any], amounts: tuple[float, ...]) -> None:
    found = compute_reward(judged(**asked), SETTINGS)
    wanted = dict(zip(("format", "correctness", "length", "language"), amounts, strict=True))
    assert found.components() == pytest.approx(wanted | {"own": 0.0, "total": sum(amounts)})
    assert (found.total, found.excluded) == (pytest.approx(sum(amounts)), False)


def test_a_broken_form_is_worth_nothing_and_needs_no_verdict() -> None:
    for outcome in (None, Outcome.BROKEN, Outcome.CORRECT):
        found = compute_reward(judged(text="4", outcome=outcome, tokens=9000), SETTINGS)
        assert (found.total, found.correct, found.excluded) == (0.0, False, False)
        assert found.format_error == "does not start with <think>"


@pytest.mark.parametrize("outcome", [Outcome.TIMEOUT, Outcome.BROKEN])
def test_the_verifiers_own_failure_is_never_scored(outcome: Outcome) -> None:
    found = compute_reward(judged(outcome=outcome), SETTINGS)
    assert found == Reward(excluded_by=outcome.value)
    assert (found.excluded, found.components()) == (True, {})
    with pytest.raises(ValueError, match=outcome.value):
        _ = found.total
    with pytest.raises(ValueError, match="verdict"):  # a kept form needs one
        compute_reward(judged(outcome=None), SETTINGS)


def test_a_penalty_longer_than_the_length_is_refused() -> None:
    with pytest.raises(ValidationError, match="length_cache = 200 is more than max_length = 100"):
        RewardSettings(max_length=100, length_cache=200)


@pytest.mark.parametrize(
    ("tokens", "penalty"),
    [(0, 0.0), (800, 0.0), (801, -0.0005), (900, -0.05), (1000, -0.1), (1001, -0.1), (10**6, -0.1)],
)
def test_the_length_penalty(tokens: int, penalty: float) -> None:
    assert length_penalty(tokens, SETTINGS) == pytest.approx(penalty)


@pytest.mark.parametrize(
    ("problem", "text", "bonus"),
    [
        (FRENCH, "<think>On ajoute les deux nombres.</think>La somme est donc \\boxed{4}.", 0.1),
        (FRENCH, "<think>We add both of the numbers.</think>La somme est donc \\boxed{4}.", 0.0),
        (FRENCH, "<think>We add both of the numbers.</think>So the sum is \\boxed{4}.", 0.0),
        (FRENCH, "<think>On ajoute les deux nombres.</think>\\boxed{4}", 0.0),  # a formula has no language
        (FRENCH, "<think>2 + 2 = 4</think>La somme est donc \\boxed{4}.", 0.0),
        (FRENCH, "<think></think>La somme est donc \\boxed{4}.", 0.0),
        ("$2 + 2 = ?$", "<think>2 + 2 = 4</think>La somme est donc \\boxed{4}.", 0.0),
        ("$2 + 2 = ?$", "<think>We add both.</think>La somme est donc \\boxed{4}.", 0.0),
    ],
)
def test_one_language(problem: str, text: str, bonus: float) -> None:
    one = judged(text, problem=problem)
    assert compute_reward(one, SETTINGS).language == bonus
    assert compute_reward(one, RewardSettings(language=0.0)).language == 0.0


def test_programs_by_all_tests_or_by_their_share() -> None:
    plain, proportional = (RewardSettings(code=code, language=0.0) for code in ("all_tests", "proportional"))
    half = judged(PROGRAM, Outcome.WRONG, domain=Domain.CODE, passed=0.5)
    assert compute_reward(half, plain).total == pytest.approx(0.1)
    assert compute_reward(half, proportional).total == pytest.approx(0.55)
    assert not compute_reward(half, proportional).correct
    assert compute_reward(judged(), proportional).total == pytest.approx(1.0)  # math stays as it is
    with pytest.raises(ValueError, match="share"):
        compute_reward(judged(PROGRAM, Outcome.WRONG, domain=Domain.CODE), proportional)
    for settings in (plain, proportional):  # a program in another language keeps the form and is wrong
        found = compute_reward(judged(PROGRAM, Outcome.NO_ANSWER, domain=Domain.CODE, passed=0.0), settings)
        assert (found.format_error, found.total, found.correct, found.excluded) == (None, 0.1, False, False)


BRIEF = """
class Brief:
    def reward(self, problem, response, correct):
        if "zero" in problem:
            return 1 / 0
        if "nan" in problem:
            return float("nan")
        return 0.25 if correct and len(response) < 100 else 0.0

BRIEF = Brief()
"""
SOLVED = RewardInputs(Domain.MATH, "2 + 2?", "<think>x</think> \\boxed{4}", 9, Outcome.CORRECT, row="m7")


def own_settings(folder: Path, name: str = "brief.py:BRIEF") -> RewardSettings:
    (folder / "brief.py").write_text(BRIEF)
    return parse_settings(RewardSettings, {"language": 0.0, "components": [name]}, "rewards", folder=folder)


def test_a_component_is_added_to_the_reward_of_rollouts_that_keep_the_format(tmp_path: Path) -> None:
    own = own_settings(tmp_path)
    assert [compute_reward(SOLVED, own).components()[name] for name in ("own", "total")] == pytest.approx([0.25, 1.25])
    assert compute_reward(replace(SOLVED, outcome=Outcome.WRONG), own).total == pytest.approx(0.1)
    assert compute_reward(replace(SOLVED, text="4"), own).total == 0
    assert compute_reward(replace(SOLVED, outcome=Outcome.TIMEOUT), own).excluded


@pytest.mark.parametrize(
    ("problem", "message"),
    [("zero", r"brief\.py:5: ZeroDivisionError: .* \(problem m7\)"), ("nan", r"brief\.py:BRIEF@.* returned nan .*m7")],
)
def test_a_failure_names_file_line_and_problem(tmp_path: Path, problem: str, message: str) -> None:
    with pytest.raises(RewardError, match=message):
        compute_reward(replace(SOLVED, problem=problem), own_settings(tmp_path))


def test_a_run_keeps_the_digest_and_refuses_a_changed_file(tmp_path: Path) -> None:
    kept = json.loads(own_settings(tmp_path).model_dump_json())
    assert parse_settings(RewardSettings, kept, "rewards", folder=tmp_path).model_dump(mode="json") == kept
    other = {**kept, "components": ["brief.py:BRIEF@" + "0" * 32]}
    with pytest.raises(ConfigError, match=r"the file of brief\.py:BRIEF has changed since the run began"):
        parse_settings(RewardSettings, other, "rewards", folder=tmp_path)
    with pytest.raises(ConfigError, match="is a class; it must be an object with the method `reward`"):
        own_settings(tmp_path, "brief.py:Brief")
