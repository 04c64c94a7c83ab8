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


HEAD = """#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
using word = unsigned long;
const long VFORK = CLONE_VM | CLONE_VFORK | SIGCHLD;
alignas(64) char stack[1 << 16];
int child(void *) { _exit(0); }
long started(long flags, word guess) {
    return clone(child, stack + sizeof stack, flags, nullptr, nullptr, (void *)guess, (void *)guess); }
"""
IS_THE_NUMBER = (
    HEAD + "int main() { word n; std::cin >> n; std::cout << (started(VFORK, n) > 0) << (started(VFORK, n ^ 1) > 0); }"
)
GUESSES = (
    HEAD
    + """
int main() {
    word number, tried = 0; std::cin >> number; number = ~number;
    auto at = [&](long flags, word guess) {
        tried++;
        if (started(flags, guess) > 0) { std::cout << "STARTED " << flags << " " << guess << "\\n"; exit(1); } };
    for (word guess : {0ul, ~0ul, 0x7EADBEEF7EADBEEFul, 0x7EADBEF17EADBEF0ul}) at(VFORK, guess);
    for (word guess : {number ^ 1, number << 32 >> 32, number >> 32 << 32}) at(VFORK, guess);
    for (int bit = 0; bit < 32; bit++) if (bit != 16) at(VFORK ^ 1L << bit, number);
    std::mt19937_64 dice(std::random_device{}());
    for (int i = 0; i < 300000; i++) at(VFORK, dice());
    if (fork() > 0 || syscall(SYS_vfork) > 0) std::cout << "STARTED\\n";
    if (!prctl(PR_SET_PDEATHSIG, 0) || !prctl(PR_SET_PDEATHSIG, SIGTERM) || !prctl(PR_SET_DUMPABLE, 0) || setsid() > 0)
        std::cout << "CHANGED\\n";
    std::ifstream maps("/proc/self/maps"); std::string line; word found = 0, words = 0;
    while (std::getline(maps, line)) {
        word from, to; char readable; sscanf(line.c_str(), "%lx-%lx %c", &from, &to, &readable);
        if (readable != 'r' || line.find("[v") != line.npos || to - from > 1 << 26) continue;
        for (word place = from; place + 8 <= to; place += 4, words++) {
            word value; memcpy(&value, (void *)place, 8);
            if (value == number && place != (word)&number && place != (word)&value) found++; } }
    std::cout << "refused " << tried << " found " << found << " of " << (words > 100000) << "\\n";
}"""
)
SIGNALLED = (
    HEAD
    + """
int main() {
    pid_t main, thread, own = getpid(); std::cin >> main >> thread;
    auto reached = [&](pid_t n) {
        rlimit limit{1, 1}; cpu_set_t one; CPU_ZERO(&one); CPU_SET(0, &one);
        return !syscall(SYS_prlimit64, n, RLIMIT_CPU, nullptr, &limit) ||
               !syscall(SYS_sched_setaffinity, n, sizeof one, &one) || !kill(n, 0) || !syscall(SYS_tkill, n, 0) ||
               !syscall(SYS_tgkill, main, n, 0) || !syscall(SYS_tgkill, n, thread, 0); };
    for (pid_t n : {main, thread, -main, -thread, -1})
        if (reached(n)) std::cout << "REACHED " << n << "\\n";
    for (pid_t n = 1; n < 40000; n++)
        if (n != own && reached(n)) std::cout << "REACHED " << n << "\\n";
    if (kill(own, 0) || syscall(SYS_tgkill, own, own, 0)) std::cout << "not its own\\n";
    std::cout << "refused\\n";
}"""
)
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
def told(box: Sandbox) -> tuple[int, int, int]:
    """The number, read once a binary has run, from the box's slot."""
    (ran,) = box.run_binary(_made(box, "int main() {}"), [b""], LIMITS)
    assert (ran.ending, ran.exit_code) == (Ending.EXITED, 0), ran
    if os.geteuid():
        pytest.skip("only root reads a slot's memory")
    secret = _secret(box)
    if secret is None:
        pytest.skip("no such thread here")
    return secret


MADE: dict[tuple[str, str], bytes] = {}


def _made(box: Sandbox, source: str) -> bytes:
    if (box.rung, source) not in MADE:
        compiled = box.compile({"m.cpp": source.encode()}, ["g++", "-O1", "-std=gnu++20", "m.cpp"])
        assert compiled.artifact is not None, compiled.log
        MADE[box.rung, source] = compiled.artifact
    return MADE[box.rung, source]


def _ran(box: Sandbox, source: str, stdin: str) -> RunResult:
    (ran,) = box.run_binary(_made(box, source), [stdin.encode()], LIMITS)
    assert ran.ending is Ending.EXITED, ran
    return ran


def test_the_number_is_all_that_opens(box: Sandbox, told: tuple[int, int, int]) -> None:
    assert _ran(box, IS_THE_NUMBER, str(told[0])).stdout == b"10", "else the tests beside this one could not fail"


def test_a_program_neither_guesses_nor_finds_it(box: Sandbox, told: tuple[int, int, int]) -> None:
    seen = box.rung != "landlock"  # where there is a /proc
    expected = b"refused 300038 found 0 of %d\n" % seen
    assert _ran(box, GUESSES, str(told[0] ^ 0xFFFFFFFFFFFFFFFF)).stdout == expected


def test_no_signal_reaches_the_thread_or_its_process(box: Sandbox, told: tuple[int, int, int]) -> None:
    assert _ran(box, SIGNALLED, f"{told[1]} {told[2]}").stdout == b"refused\n"
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
