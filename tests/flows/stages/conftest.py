"""Set-ups of the tests of questions: recorded votes in a recipe, and who asks for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from curation.policies.recorded import Recorded
from curation.records import Completion, PromptRequest
from curation.storage.attempts import AttemptStore
from tests.flows.conftest import goldilocks
from tests.flows.run.folders import run


def asks_judge(question: str, settings: str = "", columns: str = "") -> str:
    """The tables of a recipe that ask a question of the votes in `votes.jsonl`, as the model judge@1."""
    return f"""
[questions.{question}]
model = "judge"
{settings}

[models.judge]
kind = "recorded"
name = "judge@1"
path = "votes.jsonl"
columns = {{ {columns}problem = "question", text = "text" }}
"""


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that the model judge@1 was asked about from here on."""
    asked: list[str] = []
    answer = Recorded.answer

    async def watched(self: Recorded, problem: PromptRequest, index: int) -> Completion | None:
        if self.key.policy == "judge@1":
            asked.append(problem.statement)
        return await answer(self, problem, index)

    monkeypatch.setattr(Recorded, "answer", watched)
    return asked


@pytest.fixture
def made_over_a_kill(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, Path, int], list[tuple[str, int]]]:
    """Run a recipe that is killed after some votes of judge@1, run it again, and return all votes that were made."""

    def runs(recipe: Path, folder: Path, killed_after: int) -> list[tuple[str, int]]:
        made: list[tuple[str, int]] = []
        add, is_first = AttemptStore.add, True

        def dying(self: AttemptStore, rows: list[tuple[str, int, Completion]]) -> None:
            add(self, rows)
            if self.key.policy == "judge@1":
                made.extend((name, index) for name, index, _ in rows)
                if is_first and len(made) == killed_after:
                    raise KeyboardInterrupt

        monkeypatch.setattr(AttemptStore, "add", dying)
        assert goldilocks("run", recipe, "--out", folder).status != 0
        assert len(made) == killed_after
        is_first = False
        run(recipe, folder)
        return made

    return runs
