"""A real chat model through the whole loop, with real commands: sampled, curated, trained, loaded and sampled again.

How much it learns is measured, not tested: `tests.benchmarks.bench_real_model`.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from tests.real_model.loop import Plan, curate, held_out_sums, measure, train
from tests.real_model.smollm import END

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

PLAN = Plan(sums=12, words=4, held_out=3, attempts=4, steps=2, group=4, batch=4, evaluate_every=100)


def test_the_folder_is_a_chat_model(smollm: Path) -> None:
    from training.optimisation.model import load_tokenizer

    tokenizer = load_tokenizer(smollm)
    ends = [
        json.loads((smollm / name).read_text())["eos_token_id"] for name in ("config.json", "generation_config.json")
    ]
    assert ends == [tokenizer.convert_tokens_to_ids(END)] * 2
    asked = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True
    )
    assert str(asked).endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")


def test_the_whole_loop(smollm: Path, tmp_path: Path) -> None:
    pytest.importorskip("vllm")
    run = curate(PLAN, tmp_path, smollm)
    kept = pl.read_parquet(run / "curated" / "data" / "*.parquet")
    assert 0 < kept.height < PLAN.sums + PLAN.words  # some are in the band, and some are not

    out = train(PLAN, tmp_path, smollm)
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    steps = [row for row in rows if row["step"] > 0]
    assert [row["step"] for row in steps] == [1, 2]
    assert steps[0]["policy/mismatch_max"] < 0.1  # before any update, trainer and vLLM agree
    assert all(row["speed/update_s"] > 0 for row in steps)
    assert all(row["policy/gradient_norm"] > 0 for row in steps)
    ledger = json.loads((out / "summary.json").read_text())["ledger"]
    assert ledger["trained"] == PLAN.batch * PLAN.steps
    assert ledger["admitted"] == ledger["trained"] + sum(ledger["dropped"].values())

    sampled = measure(out / "model", held_out_sums(PLAN), attempts=2, temperature=PLAN.temperature)
    assert len(sampled.pass_rates) == PLAN.held_out
    assert sampled.kept_form > 0.5  # without what it was shown, this model boxes one answer in fifty
