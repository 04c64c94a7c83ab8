"""The embedded model: shipped small, right as often as its card says."""

from __future__ import annotations

from tests.embedded_model.measure import measure_pass_rates
from training.embedded_model import WEIGHTS
from training.optimisation.model import load_model, load_tokenizer


def test_the_shipped_folder_is_whole_and_small() -> None:
    names = {path.name for path in WEIGHTS.iterdir()}
    assert names >= {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "README.md"}
    assert "generation_config.json" in names
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
