"""The embedded problems: the same everywhere, right, apart, and legitimate problem texts."""

from __future__ import annotations

import itertools
from random import Random

from curation.filters.statements import filter_statements
from curation.records import PROBLEM, normalise_text
from curation.verify.math_judge import JudgeTask, MathJudge, Response
from tests.embedded_model.solutions import write_response
from training.embedded_model.problems import SHARES, Exercise, Split, exercise_table, generate_exercises
from training.embedded_model.wordings import ENGLISH, LANGS


def some(count: int, seed: int = 1, split: Split | None = None) -> list[Exercise]:
    return list(itertools.islice(generate_exercises(seed, split), count))


def test_the_same_seed_gives_the_same_problems_and_another_seed_others() -> None:
    assert some(50) == some(50)
    assert some(50) != some(50, seed=2)
    # the draw itself must never change unseen: weights, data cards and recorded figures rest on it
    assert [item.statement for item in some(3, seed=0)] == FIRST


FIRST = ["What is the maximum of 876 and 530?", "What is 68 * 61?", "一本笔记本 228 元，买 7 本一共要多少元？"]


def test_no_statement_comes_twice() -> None:
    statements = [normalise_text(item.statement) for item in some(3000)]
    assert len(set(statements)) == len(statements)


def test_train_and_held_out_share_no_computation() -> None:
    train = {item.computation for seed in (1, 2, 3) for item in some(1500, seed, Split.TRAIN)}
    held_out = {item.computation for seed in (1, 2, 3) for item in some(1500, seed, Split.HELD_OUT)}
    assert train.isdisjoint(held_out)
    assert 0.15 < sum(item.held_out for item in some(3000)) / 3000 < 0.25


def test_every_kind_level_and_language_comes() -> None:
    items = some(4000)
    assert {(item.kind, item.level) for item in items} == set(SHARES)
    assert {item.lang for item in items} == set(LANGS)
    assert {kind for kind, _ in SHARES} == set(ENGLISH)


def test_answers_are_those_of_the_computation() -> None:
    signs = {"x": None}
    for item in some(2000):
        assert item.answer >= 0
        if item.kind == "equation":
            assert item.operands["a"] * item.answer + item.operands["b"] == item.operands["r"]
        elif item.kind == "larger":
            assert item.answer == max(item.operands.values())
        else:
            assert item.answer == eval(item.computation, {"__builtins__": {}}, signs)


def test_the_format_filter_keeps_every_problem_as_it_is() -> None:
    problems = exercise_table(some(500, seed=9))
    filtered = filter_statements(problems)
    assert problems.schema == PROBLEM
    assert filtered.dropped.rows() == []
    assert filtered.kept["raw_statement"].null_count() == 500


def test_responses_are_a_mixture_of_right_and_wrong_in_the_form_that_the_verifier_reads() -> None:
    items = some(300, seed=4, split=Split.TRAIN)
    random = Random(0)
    tasks = [
        JudgeTask(
            item.id, str(item.answer), item.lang, tuple(Response(write_response(item, random), None) for _ in range(4))
        )
        for item in items
    ]
    with MathJudge(workers=1) as judge:
        outcomes = [verdict.outcome.value for result in judge.judge(tasks) for verdict in result.verdicts]
    shares = {name: outcomes.count(name) / len(outcomes) for name in set(outcomes)}
    assert 0.35 < shares["correct"] < 0.75
    assert 0.2 < shares["wrong"] < 0.6
    assert set(shares) <= {"correct", "wrong", "no_answer"}
