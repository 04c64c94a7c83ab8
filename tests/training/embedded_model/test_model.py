"""The embedded model: shipped small, right as often as its card says."""

from __future__ import annotations

import itertools

from curation.records import normalise_text
from tests.embedded_model.measure import measure_pass_rates
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Exercise, Split, generate_exercises
from training.optimisation.model import load_model, load_tokenizer


def test_the_shipped_folder_is_whole_and_small() -> None:
    names = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert {path.name for path in WEIGHTS.iterdir()} >= names | {"README.md"}
    assert sum(path.stat().st_size for path in WEIGHTS.iterdir()) < 4_000_000
    assert sum(value.numel() for value in load_model(WEIGHTS).parameters()) < 1_500_000


def test_the_tokenizer_writes_any_text_and_keeps_what_the_form_needs() -> None:
    tokenizer = load_tokenizer(WEIGHTS)
    text = "<think>47+38: ¿así? 你好, привет</think>The answer is \\boxed{85}. 🙂"
    ids = tokenizer(text)["input_ids"]
    assert tokenizer.decode(ids, skip_special_tokens=True) == text
    assert [tokenizer.decode(one) for one in tokenizer("<think></think>\\boxed{412")["input_ids"]] == [
        "<think>", "</think>", "\\boxed{", "4", "1", "2",
    ]  # fmt: skip


def test_the_shipped_weights_are_right_about_as_often_as_the_card_says() -> None:
    measured = measure_pass_rates(WEIGHTS, problems=60, attempts=8, seed=11)
    rates = measured["pass_rate"]
    assert 0.2 < sum(rates) / len(rates) < 0.6
    assert (rates < 0.15).any()
    assert (rates > 0.7).any()
    assert ((rates > 0.2) & (rates < 0.8)).sum() >= 15
    assert sum(measured["tokens"]) / len(rates) < 60


def some(count: int, seed: int = 1, split: Split | None = None) -> list[Exercise]:
    return list(itertools.islice(generate_exercises(seed, split), count))


def test_the_same_seed_gives_the_same_problems_and_another_seed_others() -> None:
    assert some(50) == some(50)
    assert some(50) != some(50, seed=2)
    # the draw itself must never change unseen: weights, data cards and recorded figures rest on it
    assert [item.statement for item in some(3, seed=0)] == FIRST


FIRST = ["What is the maximum of 876 and 530?", "What is 68 * 61?", "一本笔记本 228 元，买 7 本一共要多少元？"]


def test_no_statement_comes_twice_and_train_and_held_out_share_no_computation() -> None:
    assert len({normalise_text(item.statement) for item in some(3000)}) == 3000
    train = {item.computation for seed in (1, 2, 3) for item in some(1500, seed, Split.TRAIN)}
    held_out = {item.computation for seed in (1, 2, 3) for item in some(1500, seed, Split.HELD_OUT)}
    assert train.isdisjoint(held_out)
    assert 0.15 < sum(item.held_out for item in some(3000)) / 3000 < 0.25


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
