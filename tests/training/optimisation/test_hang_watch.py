"""A rank that hangs: seen, named, ended; one that moves on, or waits between tasks, is left alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.places import ROOT
from training.optimisation.hang_watch import HUNG, HangWatch

STUCK = """
import threading
from training.optimisation.hang_watch import HangWatch

def forward_of_layer_7():
    threading.Event().wait()

watch = HangWatch(3, 0.2)
with watch.task("step"):
    watch.moved_on()
    watch.moved_on()
    forward_of_layer_7()
"""


def test_a_rank_that_hangs_says_where_and_ends() -> None:
    done = subprocess.run([sys.executable, "-c", STUCK], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == HUNG
    assert "rank 3 has not moved on for 0.2 s in task `step`, of which it has done 2 parts" in done.stderr
    assert "in forward_of_layer_7" in done.stderr


def test_who_moves_on_has_all_its_time_again_and_between_tasks_there_is_no_limit() -> None:
    now = [100.0]
    watch = HangWatch(0, 900.0, lambda said: pytest.fail(said), lambda: now[0])
    assert watch.left_s is None
    with watch.task("step"):
        for _ in range(10):
            now[0] += 600
            assert watch.left_s == 300
            watch.moved_on()
            assert watch.left_s == 900
    now[0] += 10_000
    assert watch.left_s is None
