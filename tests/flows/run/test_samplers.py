"""Several processes that ask the servers of a stage: the same set, the same store, also where they are killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.curation.policies.test_endpoint import StandIn
from tests.flows.conftest import Tiny, write_jsonl
from tests.flows.run.test_refusals import RECIPE
from tests.waiting import PATIENCE_S

ANSWERED = 12
"""Requests that are answered before two hang."""


@pytest.fixture
def recipe(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "inputs"
    home.mkdir()
    problems = {f"What is {number} plus {number} times 3?": 4 * number for number in range(20, 44)}
    write_jsonl(
        home / "problems.jsonl", [{"question": text, "final": str(answer)} for text, answer in problems.items()]
    )
    says = [[text, f"\\boxed{{{answer}}}"] for text, answer in problems.items()]
    (tmp_path / "says.json").write_text(json.dumps(says))
    server = StandIn(tmp_path / "journal.jsonl", plan="ok " * ANSWERED + "hang hang", says=tmp_path / "says.json")
    recipe = home / "poisoned.toml"
    recipe.write_text(RECIPE.replace("URL", server.url).replace("shard_rows = 2", "shard_rows = 8"))
    yield recipe
    server.stop()


def contents(run: Tiny) -> dict[str, bytes]:
    """What was published, and the parts of the store, byte for byte."""
    paths = [*(run.folder / "curated" / "data").glob("*"), *(run.folder / "attempts").glob("*/part-*")]
    return {str(path.relative_to(run.folder)): path.read_bytes() for path in paths}


def kill_samplers(journal: Path, done: threading.Event, killed: set[int]) -> None:
    """Kill all asking processes once two requests hang: nothing else sets these free, so the run cannot end before."""
    while not done.wait(0.02):
        asked = journal.read_text().count('"asked"') if journal.exists() else 0
        if asked < ANSWERED + 2:
            continue
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if "curation.policies.asking_process" in child.cmdline():
                    os.kill(child.pid, signal.SIGKILL)
                    killed.add(child.pid)
        return


def test_killed_samplers_change_no_byte(recipe: Path, tmp_path: Path) -> None:
    one, several = Tiny(recipe, tmp_path / "one"), Tiny(recipe, tmp_path / "several")
    done, killed = threading.Event(), set[int]()
    killer = threading.Thread(target=kill_samplers, args=(tmp_path / "journal.jsonl", done, killed))
    killer.start()
    try:
        said = several.run("stage1.sampling.samplers=2")
    finally:
        done.set()
        killer.join(PATIENCE_S)
    assert said.status == 0, said.err
    assert len(killed) == 2
    assert one.run().status == 0
    assert contents(one) == contents(several)
    assert contents(one)


def test_samplers_need_servers(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(RECIPE.replace('kind = "endpoint"', 'kind = "vllm"').partition("urls")[0])
    said = Tiny(tmp_path / "r.toml", tmp_path / "run").run("stage1.sampling.samplers=2")
    assert said.status == 1
    assert "sampling.samplers = 2 asks servers from several processes" in said.err
