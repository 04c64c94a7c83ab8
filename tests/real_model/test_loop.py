"""A real chat model through the whole loop, with real commands: sampled, curated, trained, loaded and asked again.

vLLM samples for curation and training, in fp32, since bf16 is five times slower on a processor without instructions for
it; transformers asks the folder that is left.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
import tomli_w

from curation.records import Domain, problem_id
from tests.places import ROOT, SHARED_DATA, in_gate
from tests.real_model.smollm import END

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

SUMS, WORDS, HELD_OUT = 12, 4, 3
SVAMP = SHARED_DATA / "math" / "svamp.jsonl"
"""Word problems in one step, where they are at hand."""
CURATION, TRAINING = (
    tomllib.loads(Path(__file__).with_name(name).read_text()) for name in ("curation.toml", "training.toml")
)


def recipe(path: Path, table: dict[str, Any], model: Path) -> Path:
    student = table["models"]["student"] | {"model": str(model)}
    path.write_text(tomli_w.dumps(table | {"models": {"student": student}}), encoding="utf-8")
    return path


def goldilocks(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "flows.cli", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def test_the_folder_is_a_chat_model(smollm: Path) -> None:
    from training.optimisation.model import load_tokenizer

    tokenizer = load_tokenizer(smollm)
    for name in ("config.json", "generation_config.json"):
        assert json.loads((smollm / name).read_text())["eos_token_id"] == tokenizer.convert_tokens_to_ids(END)
    turn = [{"role": "user", "content": "Hi"}]
    asked = tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
    assert asked.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")


@in_gate("training/real-model")
def test_the_whole_loop(smollm: Path, tmp_path: Path) -> None:
    pytest.importorskip("vllm")
    pairs = [(a, b) for a in range(1, 30) for b in range(1, 10) if (a, b) not in ((2, 5), (5, 2), (13, 5))]
    Random(1).shuffle(pairs)
    sums = [(f"What is {a} + {b}?", str(a + b)) for a, b in pairs]
    shown, held_out = sums[:SUMS], sums[SUMS : SUMS + HELD_OUT]
    rows = (json.dumps({"problem": statement, "answer": answer, "lang": "en"}) for statement, answer in shown)
    (tmp_path / "sums.jsonl").write_text("\n".join(rows))
    words = {"name": "svamp", "path": str(SVAMP), "limit": WORDS, "license": "MIT"}
    sources = CURATION["sources"] + [CURATION["sources"][0] | words] * SVAMP.is_file()
    made = recipe(tmp_path / "recipe.toml", CURATION | {"sources": sources}, smollm)
    goldilocks("run", made, "--out", tmp_path / "run")
    kept = pl.read_parquet(tmp_path / "run" / "curated" / "data" / "*.parquet")
    assert 0 < kept.height < SUMS + WORDS  # some are in the band, and some are not

    (tmp_path / "held_out" / "data").mkdir(parents=True)
    shared = {"domain": Domain.MATH.value, "lang": "en", "meta": "{}"}
    ids = [problem_id(statement) for statement, _ in held_out]
    table = pl.DataFrame(held_out, schema=["statement", "answer"], orient="row").with_columns(
        pl.Series("id", ids), pl.Series("group", ids), **{name: pl.lit(value) for name, value in shared.items()}
    )
    table.write_parquet(tmp_path / "held_out" / "data" / "train-0.parquet")
    out = tmp_path / "trained"
    goldilocks("train", recipe(tmp_path / "train.toml", TRAINING, smollm), "--out", out)
    metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    steps = [row for row in metrics if row["step"] > 0]
    assert [row["step"] for row in steps] == [1, 2]
    assert steps[0]["policy/mismatch_max"] < 0.1  # before any update, trainer and vLLM agree
    assert all(row["speed/update_s"] > 0 for row in steps)
    assert all(row["policy/gradient_norm"] > 0 for row in steps)
    ledger = json.loads((out / "summary.json").read_text())["ledger"]
    assert ledger["trained"] == 4 * 2
    assert ledger["admitted"] == ledger["trained"] + sum(ledger["dropped"].values())

    answers = [ask(out / "model", statement) for statement, _ in held_out]
    kept_form = [answer for answer in answers if re.search(r"\\boxed\{\d+\}", answer)]
    assert len(kept_form) > HELD_OUT / 2, answers  # without what it was shown, this model boxes one in fifty


def ask(folder: Path, question: str) -> str:
    """Return a model folder's likeliest answer, with the examples that it was trained with."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    chat = []
    for example in TRAINING["models"]["student"]["examples"]:
        chat.append({"role": "user", "content": example["statement"]})
        chat.append({"role": "assistant", "content": example["response"]})
    chat.append({"role": "user", "content": question})
    ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    made = model.generate(**ids, do_sample=False, max_new_tokens=32)
    return str(tokenizer.decode(made[0, ids["input_ids"].shape[1] :], skip_special_tokens=True))
