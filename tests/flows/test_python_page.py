"""The page on Python as a reader follows it: its blocks run against a real server and a real recipe."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import curation
import flows
from curation.records import ConfigError, SourceError
from tests.curation.policies.test_endpoint import StandIn
from tests.flows.conftest import ROOT, Tiny

PAGE = (ROOT / "docs" / "how-to" / "python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_every_block_runs_and_prints_what_is_so(
    tiny_copy: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = tmp_path / "says.json"
    said.write_text(json.dumps([["7 times 6", "It is \\boxed{42}."]]))
    server = StandIn(tmp_path / "journal.jsonl", says=said)
    monkeypatch.chdir(tiny_copy.recipe.parent)
    names = {"sums.toml": str(tiny_copy.recipe), "http://localhost:8000/v1": server.url}
    printed = []
    try:
        for block in BLOCKS:
            for example, here in names.items():
                block = block.replace(example, here)
            exec(compile(block, "python.md", "exec"), {})
            printed.append(capsys.readouterr().out.splitlines())
    finally:
        server.stop()
    answers, program, rate, pipeline = printed
    assert [line.split()[0] for line in answers] == ["correct", "wrong", "wrong"]
    assert program[0].startswith("AC [")
    assert rate == ["1.0 correct"]
    assert pipeline[-1] == str(tiny_copy.table("data").height)


def test_only_the_names_of_the_page_are_promised() -> None:
    imported = {name for block in BLOCKS for name in re.findall(r"import ([\w, ]+)", block)}
    assert {name for names in imported for name in names.split(", ")} == {*curation.__all__, *flows.__all__}


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no curated set"):
        curation.read_set(tmp_path)
    with pytest.raises(ConfigError, match="the kinds that can be asked are endpoint, vllm"):
        curation.pass_rate("1 + 1?", "2", {"kind": "torch", "model": "embedded"})
