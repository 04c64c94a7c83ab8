"""A real chat model through the whole loop, with real commands: sampled, curated, trained, loaded and asked again.

vLLM samples for curation and training, in fp32, since bf16 is five times slower on a processor without instructions for
it; transformers asks the folder that is left.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from random import Random

import polars as pl
import pytest

from curation.records import Domain, problem_id
from tests.places import ROOT, SHARED_DATA, in_gate
from tests.real_model.smollm import END

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

SUMS, WORDS, HELD_OUT, BATCH, STEPS, TOKENS = 12, 4, 3, 4, 2, 32
SVAMP = SHARED_DATA / "math" / "svamp.jsonl"
"""Word problems in one step, where they are at hand."""
EXAMPLES = (
    ("What is 2 + 5?", r"2 + 5 = \boxed{7}"),
    ("What is 13 + 5?", r"13 + 5 = \boxed{18}"),
    ("Tom has 9 pens and buys 4 more. How many pens has Tom?", r"9 + 4 = \boxed{13}"),
)
"""What the prompt shows: without any, this model writes a box in one response of fifty or less."""

MODEL = """
[models.student]
kind = "vllm"
model = {model}
prompt = "plain"
thinking = "none"
examples = [{shown}]
dtype = "float32"
max_model_len = 512
kv_cache_mb = 512
decoding = {{ temperature = 1.0{most} }}
"""
CURATION = """
name = "real-model"
workers = 1
[[sources]]
name = "sums"
kind = "jsonl"
path = "sums.jsonl"
license = "Apache-2.0"
columns = {{ answer = "answer" }}
{words}
[near_dedup]
enabled = false # two sums are as alike as that
[stage1]
model = "student"
# A weak model errs in one voice, and these references are right by construction.
band = {{ attempts = 4, max_pass_rate = 0.875, wrong_label_share = 1 }}
"""
SOURCE_OF_WORDS = f"""
[[sources]]
name = "svamp"
kind = "jsonl"
path = {json.dumps(str(SVAMP))}
limit = {WORDS}
license = "MIT"
columns = {{ answer = "answer" }}
"""
TRAINING = """
name = "real-model"
seed = 1
steps = {steps}
model = "student"
[data]
kind = "curated"
folders = ["run/curated"]
[collector]
group_size = 4
n_async = {batch}
n_batch = {batch}
max_staleness = 2
[rewards]
max_length = {tokens}
length_penalty = 0.0
language = 0.0 # a sum has no language
[optim]
learning_rate = 1e-5
warmup_steps = 2
[packing]
micro_batch_tokens = 2048
[evaluation]
every = 100
attempts = 4
problems = 32
[evaluation.data]
kind = "curated"
folders = ["held_out"]
[checkpoints]
every = {steps}
"""


def recipe(path: Path, text: str, model: Path) -> Path:
    """Write a recipe with its model."""
    shown = ", ".join(f"{{ statement = {json.dumps(one)}, response = {json.dumps(two)} }}" for one, two in EXAMPLES)
    words = SOURCE_OF_WORDS if SVAMP.is_file() else ""
    most = f", max_tokens = {TOKENS}" if text == CURATION else ""
    values = {"words": words, "most": most, "steps": STEPS, "batch": BATCH, "tokens": TOKENS, "shown": shown}
    path.write_text((text + MODEL).format(model=json.dumps(str(model)), **values), encoding="utf-8")
    return path


def goldilocks(*arguments: str | Path) -> None:
    """Run a command as a user does."""
    command = [sys.executable, "-m", "flows.cli", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


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
    pairs = [(a, b) for a in range(1, 30) for b in range(1, 10) if (a, b) not in ((2, 5), (5, 2), (13, 5))]
    Random(1).shuffle(pairs)
    sums = [(f"What is {a} + {b}?", str(a + b)) for a, b in pairs]
    shown, held_out = sums[:SUMS], sums[SUMS : SUMS + HELD_OUT]
    rows = (json.dumps({"problem": statement, "answer": answer, "lang": "en"}) for statement, answer in shown)
    (tmp_path / "sums.jsonl").write_text("\n".join(rows))
    goldilocks("run", recipe(tmp_path / "recipe.toml", CURATION, smollm), "--out", tmp_path / "run")
    kept = pl.read_parquet(tmp_path / "run" / "curated" / "data" / "*.parquet")
    assert 0 < kept.height < SUMS + WORDS  # some are in the band, and some are not

    (tmp_path / "held_out" / "data").mkdir(parents=True)
    shared = {"domain": Domain.MATH.value, "lang": "en", "meta": "{}"}
    asked = [
        {"id": problem_id(statement), "group": problem_id(statement), "statement": statement, "answer": answer}
        for statement, answer in held_out
    ]
    pl.DataFrame([row | shared for row in asked]).write_parquet(tmp_path / "held_out" / "data" / "train-0.parquet")
    out = tmp_path / "trained"
    goldilocks("train", recipe(tmp_path / "train.toml", TRAINING, smollm), "--out", out)
    metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    steps = [row for row in metrics if row["step"] > 0]
    assert [row["step"] for row in steps] == [1, 2]
    assert steps[0]["policy/mismatch_max"] < 0.1  # before any update, trainer and vLLM agree
    assert all(row["speed/update_s"] > 0 for row in steps)
    assert all(row["policy/gradient_norm"] > 0 for row in steps)
    ledger = json.loads((out / "summary.json").read_text())["ledger"]
    assert ledger["trained"] == BATCH * STEPS
    assert ledger["admitted"] == ledger["trained"] + sum(ledger["dropped"].values())

    answers = [ask(out / "model", statement) for statement, _ in held_out]
    kept_form = [answer for answer in answers if re.search(r"\\boxed\{\d+\}", answer)]
    assert len(kept_form) > HELD_OUT / 2, answers  # without what it was shown, this model boxes one in fifty


def ask(folder: Path, question: str) -> str:
    """Return a model folder's likeliest answer, with the examples that it was trained with."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    turns = [turn for example in EXAMPLES for turn in zip(("user", "assistant"), example, strict=True)]
    chat = [{"role": role, "content": text} for role, text in (*turns, ("user", question))]
    ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    made = model.generate(**ids, do_sample=False, max_new_tokens=TOKENS)
    return str(tokenizer.decode(made[0, ids["input_ids"].shape[1] :], skip_special_tokens=True))
