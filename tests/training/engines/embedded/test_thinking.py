"""The form spans prompt and response: the shipped model with its tags moved, renamed or taken away trains as before."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

from curation.config import Decoding, TorchModel
from curation.records import Domain, Policy, PromptRequest
from tests.training.engines.embedded.test_run import lines, small
from tests.training.students import student
from training.embedded_model import WEIGHTS
from training.engines.embedded import run
from training.generation.torch_policy import TorchPolicy
from training.optimisation.model import load_tokenizer


def model(folder: Path, *, template: str = "", tags: str = "") -> Path:
    """A copy of the shipped model whose template ends in ``template``, or whose tags are special tokens ``[tags]``."""
    shutil.copytree(WEIGHTS, folder)
    with (folder / "chat_template.jinja").open("a", encoding="utf-8") as file:
        file.write(template)
    if tags:
        path = folder / "tokenizer.json"
        text = path.read_text(encoding="utf-8")
        for old, new in (("<think>", f"[{tags}]"), ("</think>", f"[/{tags}]")):
            text = text.replace(json.dumps(old), json.dumps(new))
        table = json.loads(text)
        for token in table["added_tokens"]:
            token["special"] = token["special"] or tags in token["content"]
        path.write_text(json.dumps(table), encoding="utf-8")
    return folder


def train(out: Path, **changes: Any) -> list[Any]:
    """Train in waves, so that the same draws are made; return the rows of attempts.jsonl."""
    changes = {"steps": 1, "collector": {"max_staleness": 0}, "evaluation": {"data": None}, **changes}
    run.train(small(**changes), Path(), out)
    return lines(out / "attempts.jsonl")


def test_a_model_whose_template_opens_the_tag_trains(tmp_path: Path) -> None:
    folder = model(tmp_path / "moved", template="<think>")
    rows = train(tmp_path / "run", **student(str(folder)))
    assert sum(row["reward"]["format"] > 0 for row in rows) > len(rows) / 2
    assert any(row["reward"]["correctness"] for row in rows)


def test_tags_that_are_special_tokens_train_token_by_token_alike(tmp_path: Path) -> None:
    folder = model(tmp_path / "mistral", tags="THINK")
    tokenizer = load_tokenizer(folder)
    assert tokenizer.decode(tokenizer("[THINK]1[/THINK]2")["input_ids"], skip_special_tokens=True) == "12"
    before = train(tmp_path / "before")
    after = train(tmp_path / "after", **student(str(folder), thinking="[THINK]"))
    as_written = [{**row, "method": row["method"].replace("THINK]", "think>").replace("[", "<")} for row in after]
    assert as_written == before  # but for the tags that a broken form names
    assert any(row["reward"]["correctness"] for row in after)


def test_a_model_without_thinking_trains(tmp_path: Path) -> None:
    folder = model(tmp_path / "direct", template="<think></think>")
    rows = train(tmp_path / "run", **student(str(folder), thinking="none"))
    assert any(row["reward"]["format"] for row in rows)


ASKED = [PromptRequest(f"p{n}", f"What is {n} + 7?", Domain.MATH, "en") for n in range(4)]


def sampled(folder: Path, thinking: str) -> list[str]:
    """What the torch policy hands over for the same draws."""
    settings = TorchModel(model=str(folder), thinking=thinking, decoding=Decoding(temperature=1.0, max_tokens=60))
    return asyncio.run(answers(TorchPolicy(settings, folder.parent)))


async def answers(policy: Policy) -> list[str]:
    async with policy:
        said = await asyncio.gather(*(policy.answer(request, 0) for request in ASKED))
    return [str(one.text) for one in said if one is not None]


def test_attempts_are_handed_over_in_one_form(tmp_path: Path) -> None:
    plain = sampled(WEIGHTS, "<think>")
    assert all(text.startswith("<think>") and "</think>" in text for text in plain)
    mistral = model(tmp_path / "mistral", tags="THINK")
    assert sampled(mistral, "[THINK]") == plain
    for text in sampled(model(tmp_path / "moved", template="<think>"), "<think>"):
        assert text.startswith("<think>")
        assert text.count("<think>") == 1
    direct = model(tmp_path / "direct", template="<think></think>")
    assert all(text.startswith("<think></think>") for text in sampled(direct, "<think>"))
    assert not any(text.startswith("<think>") for text in sampled(direct, "none"))
    knows = "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}"  # as Qwen3's
    told = model(tmp_path / "qwen", template=knows)
    assert all(text.startswith("<think>") for text in sampled(told, "<think>"))
    assert not any(text.startswith("<think>") for text in sampled(told, "none"))
