"""The form spans prompt and response: the shipped model with its tags moved, renamed or removed is as good as ever."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.config import Decoding, TorchModel
from curation.records import Domain, Policy, PromptRequest
from tests.training.engines.embedded.test_run import small
from tests.training.students import student
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Split
from training.generation.generators import TorchGenerator
from training.generation.torch_policy import TorchPolicy
from training.optimisation.model import load_tokenizer
from training.rollouts.rollouts import Rollout, RolloutRunner
from training.rollouts.tasks import TrainingTask, load_tasks
from training.rollouts.verifiers import Verifiers


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


@pytest.fixture(scope="module")
def tasks() -> list[TrainingTask]:
    return list(load_tasks(small().data, Split.TRAIN, Path()).values())[:32]


@pytest.fixture(scope="module")
def verifiers(tasks: list[TrainingTask]) -> Iterator[Verifiers]:
    with Verifiers(tasks, 1, small().rewards) as made:
        yield made


def rolled_out(
    folder: Path, tasks: list[TrainingTask], verifiers: Verifiers, thinking: str = "<think>"
) -> list[Rollout]:
    """Roll out one attempt at each task as a run does."""
    made = small(**student(str(folder), thinking=thinking))
    tokenizer, prompt = load_tokenizer(folder), made.solving_prompt
    runner = RolloutRunner(tokenizer, prompt, verifiers, made.rewards, made.seed, made.tags)

    async def run() -> list[Rollout]:
        async with TorchGenerator(folder, capacity=32) as generator:
            asked = (runner.generate(generator, task, number, 0, 60) for number, task in enumerate(tasks))
            completions = await asyncio.gather(*asked)
        pairs = zip(tasks, completions, strict=True)
        return await asyncio.gather(*(runner.verify(task, one, number) for number, (task, one) in enumerate(pairs)))

    return asyncio.run(run())


@pytest.mark.parametrize(("template", "thinking"), [("<think>", "<think>"), ("<think></think>", "none")])
def test_a_model_whose_template_opens_the_tag_or_thinks_not_is_rewarded(
    tmp_path: Path, tasks: list[TrainingTask], verifiers: Verifiers, template: str, thinking: str
) -> None:
    made = rolled_out(model(tmp_path / "moved", template=template), tasks, verifiers, thinking)
    assert any(one.reward.format for one in made)
    assert thinking == "none" or any(one.reward.correctness for one in made)


def test_tags_that_are_special_tokens_are_rewarded_token_by_token_alike(
    tmp_path: Path, tasks: list[TrainingTask], verifiers: Verifiers
) -> None:
    folder = model(tmp_path / "mistral", tags="THINK")
    tokenizer = load_tokenizer(folder)
    assert tokenizer.decode(tokenizer("[THINK]1[/THINK]2")["input_ids"], skip_special_tokens=True) == "12"
    before = rolled_out(WEIGHTS, tasks, verifiers)
    after = rolled_out(folder, tasks, verifiers, "[THINK]")
    assert [one.completion.token_ids for one in after] == [one.completion.token_ids for one in before]
    methods = [one.method.replace("THINK]", "think>").replace("[", "<") for one in after]
    assert methods == [one.method for one in before]  # but for the tags that a broken form names
    assert [one.reward.components() for one in after] == [one.reward.components() for one in before]
    assert any(one.reward.correctness for one in after)


ASKED = [PromptRequest(f"p{n}", f"What is {n} + 7?", Domain.MATH, "en") for n in range(4)]


def sampled(folder: Path, thinking: str) -> list[str]:
    """What the torch policy hands over for the same draws."""
    settings = TorchModel(model=str(folder), thinking=thinking, decoding=Decoding(temperature=1.0, max_tokens=60))
    return asyncio.run(answers(TorchPolicy(settings, folder.parent)))


async def answers(policy: Policy) -> list[str]:
    async with policy:
        said = await asyncio.gather(*(policy.answer(request, 0) for request in ASKED))
    return [str(one.text) for one in said if one is not None]


@pytest.mark.slow
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
