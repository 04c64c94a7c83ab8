"""A run that is started again while processes of its earlier start live: they are killed."""

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
from training.engines.verl.run import end_leftovers, processes_of, train

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


STAYS = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('begun', flush=True); signal.pause()"


def test_processes_of_an_earlier_start_are_killed_and_others_left_alone(
    tmp_path: Path, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    mine, other = tmp_path / "run", tmp_path / "run-2"
    stays, stranger = [start(mine, STAYS) for _ in range(2)], start(other, STAYS)
    assert (processes_of(mine), processes_of(other)) == (sorted(one.pid for one in stays), [stranger.pid])
    end_leftovers(mine)
    assert [process.wait() for process in stays] == [-9, -9]
    assert f"{mine}: 2 processes of this run's earlier start are killed." in capsys.readouterr().err
    assert stranger.poll() is None


def test_a_run_that_still_runs_is_not_resumed_beside_it(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with lock_folder(out / "verl"), pytest.raises(StoreError, match="is in use by another run"):
        train(recipe(tmp_path), tmp_path, out, resume=True)


def test_leftovers_are_ended_before_the_folder_is_touched(tmp_path: Path, start: Start) -> None:
    out = tmp_path / "run"
    leftover = start(out, STAYS)
    with pytest.raises(StoreError, match="no run to resume"):
        train(recipe(tmp_path), tmp_path, out, resume=True)
    assert leftover.wait() == -9
