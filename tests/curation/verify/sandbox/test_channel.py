"""What a supervisor answers is read as data of a known shape, and what a program leaves is swept away: both by dice.

A supervisor that answers otherwise fails its slot, which is BROKEN and no verdict, and never the judge.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from curation.verify.sandbox import Ending, Limits, Sandbox
from curation.verify.sandbox import slot as slots
from curation.verify.sandbox.inside import folder
from curation.verify.sandbox.slot import (
    ANSWER_TYPES,
    Answer,
    SlotError,
    output_file,
    read_answer,
    run_result,
    worse_than_limits,
)

RUN = {"status": 0, "killed": "", "cpu_s": 0.1, "wall_s": 0.1, "peak_kb": 9, "sizes": [0, 0], "failed": ""}
NUMBERS = st.one_of(st.integers(), st.floats(), st.integers(0, 1 << 17))
VALUES = st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=9), st.lists(NUMBERS, max_size=3))
OBJECTS = st.dictionaries(st.sampled_from([*ANSWER_TYPES, "other"]), VALUES, max_size=9)
RUNS = OBJECTS.map(lambda changed: {**RUN, **changed})
MESSAGES = st.one_of(VALUES, OBJECTS, st.builds(lambda runs, more: {**more, "ran": runs}, st.lists(RUNS), OBJECTS))


@pytest.mark.slow
@given(MESSAGES.map(lambda told: json.dumps(told).encode()) | st.binary(max_size=60))
@example(b"[" * 99_999)
@example(b'{"status": ' + b"9" * 5000 + b"}")
@example(b'{"cpu_s": 1e999}')
@example(b'{"cpu_s": NaN}')
@example(b'{"status": -1}')
@example(b'{"status": true}')
@example(b'{"sizes": [1]}')
@example(b'{"ran": [{"status": 9007199254740991, "killed": "", "cpu_s": 0, "wall_s": 0, "peak_kb": 0}]}')
@example(json.dumps({"ran": [{**RUN, "sizes": [1, 0]}]}).encode())
@example(b'{"ran": [{}]}')
@example(b'{"ran": [1]}')
@example(b"\xff")
def test_an_answer_is_read_or_refused_and_nothing_else(data: bytes) -> None:
    empty = output_file()
    try:
        answer = read_answer(data)
        for used in answer.get("ran", []):
            ran = run_result(used, Limits(), empty, empty)
            assert (ran.ending in Ending, ran.stdout, ran.stderr) == (True, b"", b"")
        assert worse_than_limits(answer, Limits()) in {True, False}
    except SlotError:
        return
    finally:
        os.close(empty)


def test_a_true_answer_is_read_as_it_is() -> None:
    for told in (
        {"ready": True, "uid": 5, "proc": True, "alone": False, "forks": True},
        {"ran": [RUN]},
        {"peak_kb": 7},
    ):
        answer = read_answer(json.dumps(told).encode())
        assert isinstance(answer, Answer)
        assert answer == told


ODD = {
    "nothing that ran": b'{"ran": []}',
    "no words": b"{}",
    "no object": b"[]",
    "no JSON": b"\xff\x00",
    "another answer": b'{"done": true}',
    "a number for a text": b'{"ran": [{"status": "0"}]}',
    "no status": b'{"ran": [{"killed": ""}]}',
}
LIAR = """
import json, socket, sys
plan = json.loads(sys.argv[2])
control = socket.socket(fileno=plan["control"])
control.send(b'{"ready": true, "uid": 1, "proc": true, "alone": true, "forks": false}')
while control.recv(1 << 16):
    control.send(ANSWER)
"""


def test_a_supervisor_that_answers_otherwise_fails_its_slot_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with Sandbox(workers=1) as box:
        (honest,) = box._idle["std"]
        honest.close()
        box._idle["std"].clear()
        for way, answer in ODD.items():
            with monkeypatch.context() as patch:
                patch.setattr(slots, "START", LIAR.replace("ANSWER", repr(answer)))
                (ran,) = box.run_python("print(1)", [b""], Limits())
            assert ran.ending is Ending.BROKEN, way
            assert "the supervisor" in ran.note
        with monkeypatch.context() as patch:
            patch.setattr(slots, "START", LIAR.replace("ANSWER", repr(answer)))
            compiled = box.compile({"m.cpp": b""}, ["g++", "m.cpp"])
        assert compiled.run.ending is Ending.BROKEN
        assert [ran.stdout for ran in box.run_python("print(1)", [b""], Limits())] == [b"1\n"], "a new slot is whole"


NAMES = st.one_of(st.sampled_from(["a", "b", "c", "-", "x" * 255, "\n", "\udcff", "å"]))
STEPS = st.lists(
    st.tuples(st.sampled_from(["mkdir", "file", "link", "hard", "fifo", "enter", "up", "shut", "move"]), NAMES, NAMES),
    max_size=40,
)


def leave(steps: list[tuple[str, str, str]], root: Path) -> None:
    """Do what a program may do to its folder; what fails is left out."""
    here = os.open(root, os.O_RDONLY)
    stack = [here]
    for act, name, other in steps:
        at = stack[-1]
        try:
            match act:
                case "mkdir":
                    os.mkdir(name, dir_fd=at)
                case "file":
                    os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0, dir_fd=at))
                case "link":
                    os.symlink("/" if other == "-" else other, name, dir_fd=at)
                case "hard":
                    os.link(name, other, src_dir_fd=at, dst_dir_fd=at, follow_symlinks=False)
                case "fifo":
                    os.mkfifo(name, dir_fd=at)
                case "enter":
                    stack.append(os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at))
                case "up" if len(stack) > 1:
                    os.close(stack.pop())
                case "shut":
                    os.chmod(name, 0, dir_fd=at)
                case "move":
                    os.rename(name, other, src_dir_fd=at, dst_dir_fd=at)
        except OSError:
            continue
    for descriptor in stack:
        os.close(descriptor)


@given(steps=STEPS)
@example(steps=[("mkdir", "a", ""), ("enter", "a", "")] * 300 + [("file", "b", "")])
@example(steps=[("mkdir", "x" * 255, ""), ("enter", "x" * 255, "")] * 40)
@example(steps=[("link", "a", "-"), ("link", "b", "b"), ("fifo", "c", ""), ("hard", "a", "x" * 255)])
def test_whatever_lies_in_a_folder_is_counted_and_swept_away(
    steps: list[tuple[str, str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.getbasetemp() / "swept"
    root.mkdir(exist_ok=True)
    beside = root.with_name("beside")
    beside.write_text("kept")
    leave(steps, root)
    assert 0 <= folder.used_bytes(str(root), apart=False) <= folder.UNREADABLE
    folder.empty(str(root), float("inf"))
    assert list(root.iterdir()) == []
    assert beside.read_text() == "kept"
