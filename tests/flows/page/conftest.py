"""A run with planted wrong labels and hostile texts, and visitors of its page."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from flows.page.app import make_app
from tests.flows.conftest import TINY_RECIPE, Tiny, goldilocks, tries, write_jsonl

PLANTED = 20
VERDICT = "/r/run/review/verdict"
HOSTILE = (
    r"$\href{javascript:window.hacked=4}{x}$",
    "</textarea></title><svg onload=window.hacked=5>",
    '" onmouseover="window.hacked=6" x="',
    "{{ 7777 * 7 }} [a](javascript:window.hacked=7)",
)
DROPPED_HOSTILE = (
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    r"$\text{<script>window.hacked = 3</script>}$",
)
"""The format filter takes these for debris; they stay rows, and words of models."""
SIGNS = re.compile(r"<script>window|<img src=x|<svg onload|onmouseover=\"window|href=\"javascript|54439")
"""What a page would hold if one of these texts were more than text."""


def planted_rows() -> Iterator[tuple[str, str, str]]:
    """Statement, wrong reference, right answer: `PLANTED` that come to be disputed, then those that are dropped."""
    texts = [*(HOSTILE * PLANTED)[:PLANTED], *DROPPED_HOSTILE]
    for factor, hostile in enumerate(texts, start=11):
        yield f"What is {factor} times 13? {hostile}", str(13 * factor + 1), str(13 * factor)


@pytest.fixture(scope="session")
def planted_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run with disputes; do not write into it."""
    home = tmp_path_factory.mktemp("planted")
    rows: list[dict[str, Any]] = [{"question": text, "final": wrong} for text, wrong, _ in planted_rows()]
    write_jsonl(home / "problems.jsonl", rows)
    for model, finals in (("weak", "{0} {0} {1} {0}"), ("strong", "{0} {0} {0} {0}")):
        made = [tries(text, wrong, finals.format(right, wrong)) for text, wrong, right in planted_rows()]
        for row, hostile in zip(made, (*DROPPED_HOSTILE, *HOSTILE) * PLANTED, strict=False):
            row["tries"][0]["text"] = f"<think>{hostile}</think>{hostile} {row['tries'][0]['text']}"
        write_jsonl(home / f"{model}.jsonl", made)
    recipe = home / "planted.toml"
    off = "\n[near_dedup]\nenabled = false\n"
    recipe.write_text(TINY_RECIPE.replace('"tiny"', '"planted"') + off)
    said = goldilocks("run", recipe, "--out", home / "run")
    assert said.status == 0, said.err
    return home / "run"


@pytest.fixture
def planted_copy(planted_run: Path, tmp_path: Path) -> Path:
    shutil.copytree(planted_run, tmp_path / "run")
    return tmp_path / "run"


class Visitor:
    """A browser without a screen: its cookies, and the header that the page's own script sends."""

    def __init__(self, folder: Path, token: str | None = None, app: Any = None) -> None:
        self.client = TestClient(app or make_app(folder, token), base_url="http://localhost")

    def get(self, path: str, **headers: str) -> Any:
        return self.client.get(path, headers=headers)

    def decide(self, message: dict[str, Any], **headers: str) -> Any:
        csrf = re.search(r'name="csrf" content="(\w+)"', self.get("/r/run/review").text)
        assert csrf is not None
        return self.client.post(VERDICT, json=message, headers={"x-goldilocks-csrf": csrf[1], **headers})

    def shown(self, reviewer: str, problem: str = "") -> str:
        return self.client.get("/r/run/review/next", params={"reviewer": reviewer, "problem": problem}).text

    def next(self, reviewer: str, problem: str = "") -> str:
        """The problem that the review shows next; empty where nothing is left."""
        match = re.search(r'data-problem="(\w*)"', self.shown(reviewer, problem))
        assert match is not None
        return match[1]


@pytest.fixture
def visitor(tiny_run: Tiny) -> Visitor:
    """A visitor of the finished tiny run, who changes nothing."""
    return Visitor(tiny_run.folder)
