"""Prompts under a chat template and with tags of thoughts, what is refused before the first step, and `--check`."""

from __future__ import annotations

import asyncio
import json
import math
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from curation.config import Decoding, TorchModel
from curation.policies.chat_templates import stop_tokens
from curation.prompts import PLAIN, SOLVE, Prompt
from curation.records import Domain, PromptRequest
from curation.thinking import THINK
from tests.flows.conftest import goldilocks
from tests.training.engines.embedded.test_resume import asked as written
from tests.training.engines.embedded.test_run import small
from tests.training.families import make_family
from tests.training.students import student
from training.checks import CheckResult, ModelCheckError, mean_difference, require_passed
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Split
from training.engines.embedded import run
from training.engines.embedded.preflight import PromptChecks
from training.generation.generators import TorchGenerator
from training.generation.torch_policy import TorchPolicy
from training.optimisation import logprobs
from training.optimisation.model import load_tokenizer
from training.rollouts.rollouts import Rollout, RolloutRunner, render_prompt
from training.rollouts.tasks import TrainingTask, load_tasks
from training.rollouts.verifiers import Verifiers

TASKS = [
    TrainingTask(PromptRequest(f"p{n}", f"What is {'1 + ' * n}1?", Domain.MATH, "en"), str(n + 1)) for n in range(20)
]
TURNS = "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}"


@pytest.fixture
def tokenizer() -> Any:
    return load_tokenizer(WEIGHTS)


def asked(tokenizer: Any, prompt: Prompt, template: str | None = None) -> list[CheckResult]:
    tokenizer.chat_template = template or tokenizer.chat_template
    return PromptChecks(tokenizer, prompt, THINK).template(TASKS[0], stop_tokens(tokenizer, [2]))


def test_a_prompt_that_the_template_takes_leaves_out_in_part_or_refuses(tokenizer: Any) -> None:
    template, ends = asked(tokenizer, PLAIN)
    assert (template.passed, template.detail, ends.detail) == (True, "", "<|end|> (2) ends a response")
    silent, _ = asked(tokenizer, SOLVE)
    assert (silent.passed, silent.detail) == (True, "it leaves the system message of solve@1 out")
    assert asked(tokenizer, SOLVE, TURNS)[0].detail == ""
    refusing = "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    (template,) = asked(tokenizer, SOLVE, refusing + TURNS)
    assert "System role not supported" in template.detail
    assert template.advice.startswith('set prompt = "plain"')
    assert all(result.passed for result in asked(tokenizer, PLAIN, refusing + TURNS))


def room(tokenizer: Any, context: int, max_tokens: int, micro_batch: int = 32_768) -> CheckResult:
    return PromptChecks(tokenizer, PLAIN, THINK).room(TASKS, context, max_tokens, micro_batch)


def test_room_is_that_of_the_longest_prompt_and_prompts_that_fill_the_context_are_found(tokenizer: Any) -> None:
    fits, cut = (room(tokenizer, context, 100) for context in (256, 120))
    longest = int(fits.figure or 0)
    assert (fits.passed, fits.detail) == (True, "")
    assert cut.passed
    assert cut.detail.endswith(f"cut at {120 - longest} tokens, not 100")
    small = room(tokenizer, 256, 100, micro_batch=110)
    assert f"set packing.micro_batch_tokens = {longest + 100}, or a lower max_tokens" in small.advice
    assert room(tokenizer, 110, 100, micro_batch=110).passed  # the context ends it before
    lengths = {task.id: len(render_prompt(tokenizer, PLAIN, task)) for task in TASKS}
    assert longest == max(lengths.values())
    found = PromptChecks(tokenizer, PLAIN, THINK).without_room(TASKS, 40)
    assert found == {name: tokens for name, tokens in lengths.items() if tokens >= 40}
    assert 0 < len(found) < len(TASKS)


RESULTS = [
    CheckResult("end token", None, None, "</s> (2) ends a response"),
    CheckResult("room", 1200, 4096, ""),
    CheckResult("packed = unpacked", 0.4321, 1e-3, "0.43 nats off", "set packing.single = true"),
]


def test_the_first_that_failed_is_the_error() -> None:
    require_passed(RESULTS[:2], "some/model")
    message = "model some/model: packed = unpacked: 0.43 nats off; set packing.single = true. `goldilocks train RECIPE"
    with pytest.raises(ModelCheckError, match=f"^{re.escape(message)}"):
        require_passed(RESULTS, "some/model")


def test_the_mean_is_over_tokens_and_no_number_is_never_near() -> None:
    ours, other = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([5.0])], torch.tensor([4.5])
    assert mean_difference(ours, [torch.tensor([1.0, 2.5, 3.0]), other]) == pytest.approx(0.25)
    for value in (math.nan, -math.inf):
        assert mean_difference(ours, [torch.tensor([1.0, value, 3.0]), other]) == math.inf
    assert mean_difference([], []) == math.inf


NAMES = ["chat template", "end token", "room", "packed = unpacked", "generator = trainer"]
ONE_STEP: dict[str, Any] = {"steps": 1, "evaluation": {"data": None}}


@pytest.fixture
def leaking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model with short convolutions, computed as if nothing kept its sequences apart."""
    monkeypatch.setattr(logprobs, "keep_sequences_apart", lambda _: 0)
    return make_family("lfm2", tmp_path / "leaking")


def test_what_would_be_trained_wrongly_is_refused_before_the_first_step(leaking: Path, tmp_path: Path) -> None:
    recipe = small(**student(str(leaking)), **ONE_STEP)
    with pytest.raises(ModelCheckError, match=r"packed = unpacked: .* nats off .*; set packing\.single = true"):
        run.train(recipe, Path(), tmp_path / "run")
    assert not (tmp_path / "run/checkpoints").exists()
    refused = run.check(recipe, Path())
    assert [result.check for result in refused] == NAMES[:4]  # no generator was started
    assert [result.passed for result in refused] == [True, True, True, False]


@pytest.mark.slow
def test_a_token_that_only_the_template_ends_turns_with_ends_responses_here_and_in_what_is_saved(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model"
    shutil.copytree(WEIGHTS, model)
    template = (model / "chat_template.jinja").read_text()
    (model / "chat_template.jinja").write_text(template.replace("{{ eos_token }}", "{{ bos_token }}"))
    trained = run.train(small(**student(str(model)), **ONE_STEP), Path(), tmp_path / "run")
    assert json.loads((trained / "generation_config.json").read_text())["eos_token_id"] == [2, 1]
    said = capfd.readouterr().err
    assert "the model was checked: " in said
    assert "<|end|> (2), <|start|> (1) end a response; the last was added" in said


def test_check_prints_the_table_and_trains_nothing(tmp_path: Path, leaking: Path) -> None:
    recipe = written(small(), tmp_path)
    said = goldilocks("train", recipe, "--out", tmp_path / "run", "--check")
    lines = said.out.splitlines()
    assert (said.status, lines[0].split()) == (0, ["check", "figure", "tolerance", "result"])
    assert len(lines) == 1 + len(NAMES) + 1
    assert not (tmp_path / "run").exists()
    said = goldilocks("train", recipe, "--check", "--set", f"models.student.model={leaking}")
    assert (said.status, said.out) == (1, "")
    assert re.search(r"is refused[^§]*set packing\.single = true", said.err)


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
    made = small(**student(str(folder), thinking=thinking))
    runner = RolloutRunner(load_tokenizer(folder), made.solving_prompt, verifiers, made.rewards, made.seed, made.tags)

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


def sampled(folder: Path, thinking: str) -> list[str]:
    settings = TorchModel(model=str(folder), thinking=thinking, decoding=Decoding(temperature=1.0, max_tokens=60))

    async def ask() -> list[str]:
        async with TorchPolicy(settings, folder.parent) as policy:
            requests = [PromptRequest(f"p{n}", f"What is {n} + 7?", Domain.MATH, "en") for n in range(4)]
            answers = await asyncio.gather(*(policy.answer(request, 0) for request in requests))
        return [str(one.text) for one in answers if one is not None]

    return asyncio.run(ask())


@pytest.mark.slow
def test_attempts_are_handed_over_in_one_form(tmp_path: Path) -> None:
    plain = sampled(WEIGHTS, "<think>")
    assert all(text.startswith("<think>") and "</think>" in text for text in plain)
    assert sampled(model(tmp_path / "mistral", tags="THINK"), "[THINK]") == plain
    moved = sampled(model(tmp_path / "moved", template="<think>"), "<think>")
    assert all(text.startswith("<think>") and text.count("<think>") == 1 for text in moved)
    as_qwen3 = "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}"
    for name, template, begin in (("direct", "<think></think>", "<think></think>"), ("qwen", as_qwen3, "<think>")):
        folder = model(tmp_path / name, template=template)
        assert all(text.startswith(begin) for text in sampled(folder, "<think>"))
        assert not any(text.startswith("<think>") for text in sampled(folder, "none"))
