"""A run that is started again while processes of its earlier start live: they are waited for, or killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from curation.records import StoreError
from curation.storage.locks import lock_folder
from tests.training.engines.verl.test_stages import recipe
from training.engines.verl.configuration import RECIPE_VARIABLE
from training.engines.verl.run import await_leftovers, processes_of, train

Start = Callable[[Path, str], subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a process of the run in a folder, which says when it has begun."""
    with ExitStack() as stack:

        def started(out: Path, code: str) -> subprocess.Popen[bytes]:
            told = json.dumps({"recipe": {}, "out": str(out)})
            environment = {**os.environ, RECIPE_VARIABLE: told}
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
            )
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
            return process

        yield started


ENDS = "import sys; print('begun', flush=True); sys.stdin.read()"
STAYS = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('begun', flush=True); signal.pause()"


def test_processes_that_are_ending_are_waited_for_and_others_left_alone(tmp_path: Path, start: Start) -> None:
    mine, other = tmp_path / "run", tmp_path / "run-2"
    ending, stranger = start(mine, ENDS), start(other, STAYS)
    assert (processes_of(mine), processes_of(other)) == ([ending.pid], [stranger.pid])
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        assert ending.stdin is not None
        ending.stdin.close()  # as they do when they are through with what they were at

    await_leftovers(mine, say, patience_s=600.0)
    assert ending.wait() == 0
    assert said == [
        f"{mine}: 1 processes of this run's earlier start are still ending (the eldest is {ending.pid}); it goes on "
        "when they are gone, in 600 s at the latest."
    ]
    assert stranger.poll() is None


def test_processes_that_do_not_end_are_killed(tmp_path: Path, start: Start) -> None:
    stays = [start(tmp_path, STAYS) for _ in range(2)]
    said: list[str] = []
    await_leftovers(tmp_path, said.append, patience_s=0.0)
    assert [process.wait() for process in stays] == [-9, -9]
    assert said[-1] == f"{tmp_path}: 2 of them did not end by themselves and are killed."


def test_a_run_that_still_runs_is_not_resumed_beside_it(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with lock_folder(out / "verl"), pytest.raises(StoreError, match="is in use by another run"):
        train(recipe(tmp_path), tmp_path, out, resume=True)


def test_a_start_waits_before_it_touches_the_folder(
    tmp_path: Path, start: Start, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    leftover = start(out, STAYS)
    monkeypatch.setattr("training.engines.verl.run.await_leftovers", lambda run, say: await_leftovers(run, say, 0.0))
    with pytest.raises(StoreError, match="no run to resume"):
        train(recipe(tmp_path), tmp_path, out, resume=True)
    assert leftover.wait() == -9
    assert "did not end by themselves" in capsys.readouterr().err
