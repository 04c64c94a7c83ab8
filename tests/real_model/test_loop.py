"""A real chat model through the whole loop, with real commands: sampled, curated, trained, loaded and asked again.

vLLM samples for curation and training; transformers asks the folder that is left. How much it learns is measured, not
tested: `tests.benchmarks.bench_real_model`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from tests.places import in_gate
from tests.real_model.loop import MAX_TOKENS, Plan, curate, held_out_sums, train
from tests.real_model.smollm import END
from tests.real_model.sums import EXAMPLES

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


@in_gate("training/real-model")
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

    answers = [ask(out / "model", one.statement) for one in held_out_sums(PLAN)]
    kept_form = [answer for answer in answers if re.search(r"\\boxed\{\d+\}", answer)]
    assert len(kept_form) > PLAN.held_out / 2, answers  # without what it was shown, this model boxes one in fifty


def ask(folder: Path, question: str) -> str:
    """Return a model folder's likeliest answer, with the examples that it was trained with."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    turns = [turn for example in EXAMPLES for turn in zip(("user", "assistant"), example, strict=True)]
    chat = [{"role": role, "content": text} for role, text in (*turns, ("user", question))]
    ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    made = model.generate(**ids, do_sample=False, max_new_tokens=MAX_TOKENS)
    return str(tokenizer.decode(made[0, ids["input_ids"].shape[1] :], skip_special_tokens=True))
