"""A model is started once per run however many stages ask it, and two local models never run at once."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from curation.prompts import Prompt
from curation.questions.premises import PROMPT as PREMISES
from curation.records import AttemptKey, Completion, Domain, PromptRequest
from flows.run import policies
from flows.run.pipeline import run_pipeline
from flows.run.policy_session import ModelSession, keep_open, model_session
from flows.run.recipe import parse_recipe
from flows.run.run_folder import Run
from flows.run.stage import Stage, StageResult, StageRun
from tests.flows.conftest import Tiny, stamps
from tests.flows.run.folders import run

LOG: list[str] = []
"""What the fake models did, in order."""


class Counted:
    """A policy that writes down when its model starts and ends, and answers with its model and prompt."""

    in_flight = 4

    def __init__(self, settings: Any, _folder: Path, prompt: Prompt | None = None) -> None:
        self.settings, self.prompt = settings, prompt.version if prompt is not None else settings.prompt
        self.key = AttemptKey(f"{settings.model}@1", self.prompt, "s")
        self.about: dict[str, Any] = {}

    def asking(self, prompt: Prompt | None) -> Counted:
        other = copy.copy(self)
        Counted.__init__(other, self.settings, Path(), prompt)
        return other

    async def __aenter__(self) -> Counted:
        LOG.append(f"start {self.settings.model}")
        return self

    async def __aexit__(self, *_: object) -> None:
        LOG.append(f"end {self.settings.model}")

    async def answer(self, problem: PromptRequest, _index: int) -> Completion:
        return Completion(f"{self.settings.model} {self.prompt} {problem.id}", "stop", 1)


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("torch", "endpoint"):
        monkeypatch.setitem(policies.POLICIES, kind, f"{__name__}:Counted")
    LOG.clear()


PREMISES_MODEL, VERDICTS_MODEL = "questions.premises.model", "questions.doubtful_verdicts.model"
TABLE = {
    "sources": [{"path": "x.jsonl"}],
    "models": {
        "a": {"kind": "torch", "model": "small"},
        "same": {"kind": "torch", "model": "small"},
        "b": {"kind": "torch", "model": "large"},
        "far": {"kind": "endpoint", "model": "far", "revision": "1", "urls": ["http://far:1/v1"]},
    },
    "stage1": {"model": "a"},
}


def asked(session: ModelSession) -> str | None:
    session.open()
    answer = session.run(session.policy.answer(PromptRequest("p", "1 + 1?", Domain.MATH, "en"), 0))
    return answer.text if answer is not None else None


def asking(name: str, setting: str, *, opens: bool = True) -> Stage:
    """A stage that asks the model of a setting one question."""

    def work(job: StageRun) -> StageResult:
        settings = job.run.recipe.models[job.run.recipe.asked[setting]]
        prompt = PREMISES if setting == PREMISES_MODEL else None
        with model_session(settings, job.run.recipe_folder, prompt) as session:
            if opens:
                LOG.append(f"asked {asked(session)}")
        return None  # type: ignore[return-value]

    return Stage(name=name, title=name, folder=f"stages/{name}", work=work, asks=setting)


def log_of(folder: Path, premises: str, settings: Sequence[str], *, opens: bool = True) -> list[str]:
    """What the models did in a run whose stages ask those of these settings."""
    (folder / "run").mkdir()
    questions = {"premises": {"model": premises}, "doubtful_verdicts": {"model": "far"}}
    run = Run(folder / "run", parse_recipe({**TABLE, "questions": questions}, "here"), folder)
    run_pipeline(run, [asking(str(number), setting, opens=opens) for number, setting in enumerate(settings)])
    return LOG


def test_stages_that_name_one_model_start_it_once_and_it_ends_with_the_run(tmp_path: Path) -> None:
    assert log_of(tmp_path, "same", [PREMISES_MODEL, "stage1.model", VERDICTS_MODEL]) == [
        "start small", f"asked small {PREMISES.version} p", "asked small solve p",
        "start far", "asked far solve p", "end small", "end far",
    ]  # fmt: skip


def test_two_local_models_are_not_held_at_once_but_servers_elsewhere_are(tmp_path: Path) -> None:
    settings = [VERDICTS_MODEL, "stage1.model", PREMISES_MODEL, "stage1.model", VERDICTS_MODEL]
    assert [line for line in log_of(tmp_path, "b", settings) if not line.startswith("asked")] == [
        "start far", "start small", "end small", "start large", "end large", "start small", "end far", "end small",
    ]  # fmt: skip


def test_a_stage_that_needs_no_answer_starts_nothing(tmp_path: Path) -> None:
    assert log_of(tmp_path, "same", ["stage1.model"], opens=False) == []


def test_local_models_of_two_open_sessions_take_turns(tmp_path: Path) -> None:
    models = parse_recipe(TABLE, "here").models
    with keep_open(), model_session(models["a"], tmp_path) as first, model_session(models["b"], tmp_path) as second:
        texts = [asked(session) for session in (first, second, first, first)]
    assert texts == ["small solve p", "large solve p", "small solve p", "small solve p"]
    assert LOG == ["start small", "end small", "start large", "end large", "start small", "end small"]


@pytest.mark.slow
def test_a_model_under_another_name_shares_its_attempts(tiny_copy: Tiny) -> None:
    stored = stamps(tiny_copy.folder / "attempts")
    text = tiny_copy.recipe.read_text()
    tiny_copy.recipe.write_text(text.replace("models.student", "models.other").replace('"student"', '"other"'))
    run(tiny_copy.recipe, tiny_copy.folder)
    assert stamps(tiny_copy.folder / "attempts") == stored
