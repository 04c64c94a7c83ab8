"""Slots of the machine's GPUs: held one by one, and free when the holder is killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flows.serve.gpu_slots import gpu_slot, slots_folder
from tests.flows.conftest import ROOT
from tests.waiting import PATIENCE_S

HOLD = f"""
import time
from flows.serve.gpu_slots import gpu_slot
with gpu_slot(1, print):
    print("held", flush=True)
    time.sleep({PATIENCE_S})
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_two_slots_are_two_numbers() -> None:
    with gpu_slot(2, print) as first, gpu_slot(2, print) as second:
        assert (first, second) == (0, 1)
    with gpu_slot(1, print) as again:
        assert again == 0


def test_a_held_slot_is_waited_for_and_a_killed_holder_frees_it() -> None:
    said: list[str] = []
    with subprocess.Popen([sys.executable, "-c", HOLD], cwd=ROOT, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"

        def say(text: str) -> None:
            said.append(text)
            holder.kill()

        with gpu_slot(1, say):
            assert (slots_folder() / "slot-0.lock").exists()
    assert said == [f"waits for the GPUs: all 1 slots are held, by processes {holder.pid}"]
