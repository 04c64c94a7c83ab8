"""Attacks on the thread that starts binaries inside their filter (`start.c`): its number, and what it alone may do.

What a program would have to know is told to it here, read from the slot's memory by root: so the tests see that the
door opens to this number, that it opens to nothing else, and that the number is nowhere to be found.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.verify.sandbox import Ending, Limits, RunResult, Sandbox
from curation.verify.sandbox.inside.filter import ALLOW, EPERM, VFORK, build
from curation.verify.sandbox.inside.syscalls import AUDIT_ARCH, NUMBERS
from tests.curation.verify.sandbox.rungs import Runner
from tests.curation.verify.sandbox.test_attacks_kernel import ARGUMENTS, FORK, OWN, SIGNALS, SPARED, THREAD, answer_of

LIMITS = Limits(cpu_s=8.0, wall_s=30.0)

SECRET = 0x0123456789ABCDEF
SECRET_CALLS: dict[str, dict[tuple[int, ...], int]] = {
    "clone": {
        (VFORK, 1, 2, 3, SECRET): ALLOW,
        (THREAD,): ALLOW,
        **dict.fromkeys([(VFORK, 0, 0, 0, SECRET ^ 1 << bit) for bit in range(64)], EPERM),
        **dict.fromkeys([(VFORK ^ 1 << bit, 0, 0, 0, SECRET) for bit in range(32) if bit != 16], EPERM),
        **dict.fromkeys([(VFORK,), (FORK,), (FORK | 0x8000,), (THREAD | 0x20000,), (VFORK, SECRET, 0, 0, 0)], EPERM),
        (VFORK, 0, 0, 0, SECRET & 0xFFFFFFFF): EPERM,
        (VFORK, 0, 0, 0, SECRET >> 32 << 32): EPERM,
    },
    "prctl": {(1, 9): ALLOW, (15,): ALLOW, **dict.fromkeys([(1,), (1, 15), (1, 0), (4, 9), (4,), (36, 9)], EPERM)},
    "setsid": {(): ALLOW},
    **{
        name: {(): EPERM}
        for name in ("seccomp", "landlock_restrict_self", "wait4", "waitid", "fork", "vfork", "execve")
    },
    **{
        name: {
            (0,): ALLOW,
            (OWN,): ALLOW,
            **dict.fromkeys([(SPARED[0],), (SPARED[1],), (0xFFFFFFFF,), (1 << 31,)], EPERM),
        }
        for name in SIGNALS
    },
}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("owns", [True, False], ids=["own files", "others' files"])
def test_what_the_thread_that_starts_binaries_may_and_they_may_not_is_to_vfork(machine: str, owns: bool) -> None:
    numbers, halves = NUMBERS[machine], (SECRET & 0xFFFFFFFF, SECRET >> 32)
    code, other = build("binary", OWN, machine, SPARED, owns, halves), build("binary", OWN, machine, (), owns)
    assert len(code) < 256, "as many as the library has room for"
    for name, calls in SECRET_CALLS.items():
        for arguments, answer in calls.items():
            if name in numbers:
                assert answer_of(code, numbers[name], AUDIT_ARCH[machine], arguments) == answer, (name, arguments)
    for number in {*range(600), 0x40000000, 0xFFFFFFFF} - {numbers.get(name, -1) for name in SECRET_CALLS}:
        for arguments in ARGUMENTS.get(next((name for name in numbers if numbers[name] == number), ""), [(0,)]):
            says = [answer_of(each, number, AUDIT_ARCH[machine], arguments) for each in (code, other)]
            assert says[0] == says[1], (number, arguments)


SOURCE = Path(__file__).with_name("starter.cpp").read_text("utf-8")
SEARCH = """
low, high, count, found = bytes(255 - byte for byte in bytes.fromhex(input())), int(input()), 0, 0
with open("/proc/self/mem", "rb", 0) as memory:
    for line in list(open("/proc/self/maps")):
        start, end = (int(word, 16) for word in line.split()[0].split("-"))
        if line.split()[1][0] != "r" or "[v" in line:
            continue
        memory.seek(start)
        data = memory.read(end - start)
        count += len(data)
        place = data.find(low)
        while place >= 0:
            found += int.from_bytes(data[place + 4 : place + 8], "little") ^ high == 0xFFFFFFFF
            place = data.find(low, place + 1)
print(found, count > 1 << 22)
"""


def _below(pid: int) -> Iterator[int]:
    yield pid
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            yield from _below(int(child))


def _never_forked(pid: int) -> Iterator[int]:
    """Yield where the mappings of a process begin that its forks do not have."""
    place = 0
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if begins := re.match(r"(\w+)-\w+ ", line):
            place = int(begins[1], 16)
        elif line.startswith("VmFlags:") and "dc" in line.split():
            yield place


def _secret(box: Sandbox) -> tuple[int, int, int] | None:
    """Return the number, and those of its process and of the thread as the slot calls them; None without a thread.

    It stands first in the only pages that no fork has (`start.c`).
    """
    for pid in (pid for slot in box._idle["std"] for pid in _below(slot.process.pid)):
        tasks = sorted(Path(f"/proc/{pid}/task").iterdir(), key=lambda task: int(task.name))
        process, *threads = (int(re.findall(r"NSpid:.*\s(\d+)\n", (task / "status").read_text())[0]) for task in tasks)
        with open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for place in _never_forked(pid):
                memory.seek(place)
                number, thread = (int.from_bytes(memory.read(8), "little") for _ in range(2))
                if thread in threads:
                    return number, process, thread
    return None


@pytest.fixture
def told(box: Sandbox, cpp: Runner) -> tuple[int, int, int]:
    """The number, read once a binary has run, from the box's slot."""
    ran = cpp("int main() {}")
    assert (ran.ending, ran.exit_code) == (Ending.EXITED, 0), ran
    if os.geteuid():
        pytest.skip("only root reads a slot's memory")
    secret = _secret(box)
    if secret is None:
        pytest.skip("no such thread here")
    return secret


def _ran(cpp: Runner, way: str) -> RunResult:
    ran = cpp(SOURCE, way.encode(), LIMITS)
    assert ran.ending is Ending.EXITED, ran
    return ran


@pytest.mark.slow
def test_the_number_is_all_that_opens(cpp: Runner, told: tuple[int, int, int]) -> None:
    assert _ran(cpp, f"is_the_number {told[0]}").stdout == b"10", "else the tests beside this one could not fail"


def test_a_program_neither_guesses_nor_finds_it(box: Sandbox, cpp: Runner, told: tuple[int, int, int]) -> None:
    seen = box.rung != "landlock"  # where there is a /proc
    expected = b"refused 300038 found 0 of %d\n" % seen
    assert _ran(cpp, f"guesses {told[0] ^ 0xFFFFFFFFFFFFFFFF}").stdout == expected


def test_no_signal_reaches_the_thread_or_its_process(box: Sandbox, cpp: Runner, told: tuple[int, int, int]) -> None:
    assert _ran(cpp, f"signals {told[1]} {told[2]}").stdout == b"refused\n"
    assert _secret(box) == told, "the same slot"


def test_a_program_with_processes_does_not_reach_it_either(box: Sandbox, told: tuple[int, int, int]) -> None:
    if not box.forks:
        pytest.skip("no processes here")
    source = "import ctypes, sys\nc = ctypes.CDLL(None).syscall\nfor n in map(int, sys.stdin.read().split()):\n"
    source += "    print(c(62, n, 9), c(200, n, 9), c(203, n, 8, b'1' * 8), c(302, n, 0, bytes(16), None))"
    (ran,) = box.run_python(source, [f"{told[1]} {told[2]}".encode()], LIMITS, forks=True)
    assert ran.stdout == b"-1 -1 -1 -1\n" * 2, ran
    assert _secret(box) == told


def test_a_python_program_behind_it_has_not_inherited_it(box: Sandbox, told: tuple[int, int, int]) -> None:
    if box.rung == "landlock":
        pytest.skip("no /proc")
    low, high = told[0] & 0xFFFFFFFF, told[0] >> 32
    stdin = f"{(low ^ 0xFFFFFFFF).to_bytes(4, 'little').hex()}\n{high ^ 0xFFFFFFFF}\n".encode()
    (ran,) = box.run_python(SEARCH, [stdin], LIMITS)
    assert ran.stdout == b"0 True\n", ran
    assert _secret(box) == told, "the same slot"
