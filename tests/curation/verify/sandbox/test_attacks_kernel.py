"""Attacks by system calls: network, processes, signals and the kernel's other doors."""

from __future__ import annotations

import inspect
import json
import os
import platform
import signal
from pathlib import Path
from typing import Any

import pytest

from curation.verify.sandbox import Ending, Limits, Sandbox
from curation.verify.sandbox.inside import filter as rules
from curation.verify.sandbox.inside.filter import ALLOW, EPERM, EXEC_DESCRIPTOR, build
from curation.verify.sandbox.inside.syscalls import AUDIT_ARCH, NUMBERS
from tests.curation.verify.sandbox.rungs import ISOLATING, STRONGEST, USER, Runner, assert_refused, attempts, on

QUICK = Limits(cpu_s=2.0, wall_s=10.0)
REFUSED = [json.loads(line) for line in Path(__file__).with_name("refused.jsonl").read_text("utf-8").splitlines()]
"""A row has acts, what comes before them, whether the program ``forks``, the machine of its calls and ``names``, and
the files that must be ``absent`` afterwards."""


@on(*ISOLATING)
@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row["name"])
def test_what_every_rung_refuses(python: Runner, box: Sandbox, tmp_path: Path, row: dict[str, Any]) -> None:
    forks = row.get("forks", False)
    if row.get("machine", platform.machine()) != platform.machine() or (forks and not box.forks):
        pytest.skip("not on this machine")
    (tmp_path / "id_rsa").write_text("secret")
    places = {"judge": os.getpid(), "folder": tmp_path, "library": Path(os.__file__).parent}
    places["source"] = inspect.getfile(Sandbox)
    acts, absent = row["acts"], row.get("absent", [])
    for name, place in places.items():
        acts, absent = ([text.replace(f"{{{name}}}", str(place)) for text in texts] for texts in (acts, absent))
    ran = python(attempts(acts, row.get("before", "")), b"1", limits=QUICK, forks=forks)
    assert_refused(ran, len(acts))
    assert not any(map(os.path.lexists, absent))


def test_a_thread_bomb_stays_small(python: Runner) -> None:
    source = "import threading, time\nn = 0\nwhile n < 5000:\n    n += 1\n"
    source += "    threading.Thread(target=time.sleep, args=(9,), daemon=True).start()"
    ran = python(source, limits=Limits(cpu_s=2, wall_s=4, processes=16))
    limited = b"RuntimeError: can't start new thread" in ran.stderr and ran.exit_code == 1
    stopped = ran.note == "more than 16 threads" and ran.signal == signal.SIGKILL
    assert limited or stopped, ran


ENDS_WITH_7 = {
    "inline assembly forks no better": "int main(){ long r; "
    'asm volatile("syscall" : "=a"(r) : "a"(57) : "rcx","r11","memory"); return r == -1 ? 7 : 0; }',
    "a binary cannot execute another": '#include <unistd.h>\nint main(){ execl("/bin/ls", "ls", (char*)0); '
    'execl("/proc/self/exe", "x", (char*)0); return 7; }',
    "constructors before main are in the box": "#include <unistd.h>\n"
    "int p; struct A { A() { p = fork(); } } a; int main(){ return p == -1 ? 7 : 0; }",
}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="assembly of x86_64")
@on(*ISOLATING)
def test_binaries_are_refused_as_programs_are(cpp: Runner) -> None:
    assert {way: cpp(source).exit_code for way, source in ENDS_WITH_7.items()} == dict.fromkeys(ENDS_WITH_7, 7)
    abi = cpp('int main(){ long r; asm volatile("int $0x80" : "=a"(r) : "a"(20) : "memory"); return 0; }')
    assert abi.ending is Ending.SIGNALED, "a system call of another ABI"


COPY_AND_EXECUTE = """#include <fcntl.h>
#include <initializer_list>
#include <sys/syscall.h>
#include <unistd.h>
int main(int n, char**) {
    if (n > 1) { if (write(1, "REACHED", 7)) return 0; }
    static char b[1 << 16]; long k, done = 0;
    int from = open("own", O_RDONLY), to = open("copy", O_WRONLY | O_CREAT, 0700);
    while ((k = read(from, b, sizeof b)) > 0) done += write(to, b, k);
    close(to); close(from);
    const char *w[] = {"x", "y", 0}, *e[] = {0}; int f = open("copy", O_RDONLY), h = open("own", O_RDONLY);
    for (int g : {f, h, 1, 0}) for (int i = 3; i < 2048; i++)
        if (i != f && i != h && dup2(g, i) == i) { syscall(SYS_execveat, i, "", w, e, 0x1000); close(i); }
    return done > 1000 ? 7 : 8; }"""


@on(*ISOLATING)
def test_a_binary_cannot_execute_a_file_of_its_own(box: Sandbox) -> None:
    compiled = box.compile({"m.cpp": COPY_AND_EXECUTE.encode()}, ["g++", "m.cpp"])
    assert compiled.artifact is not None, compiled.log
    runs = box.run_binary(compiled.artifact, [compiled.artifact], QUICK, files={"own": compiled.artifact})
    assert [(ran.exit_code, ran.stdout) for ran in runs] == [(7, b"")]


@on(STRONGEST, USER)
def test_no_capabilities_and_no_new_privileges(python: Runner) -> None:
    status = "dict(line.split(':', 1) for line in open('/proc/self/status') if ':' in line)"
    sets = "print(*(int(s['Cap' + n], 16) for n in ('Eff', 'Prm', 'Inh', 'Amb', 'Bnd')), s['NoNewPrivs'].strip())"
    ran = python(f"s = {status}\n{sets}")
    assert ran.stdout == b"0 0 0 0 0 1\n", ran


def answer_of(code: rules.Code, number: int, arch: int, arguments: tuple[int, ...]) -> int:
    """What a filter says to a call: classic BPF, as much of it as is used."""
    words = {0: number, 4: arch} | {16 + 8 * place: value & 0xFFFFFFFF for place, value in enumerate(arguments)}
    words |= {20 + 8 * place: value >> 32 for place, value in enumerate(arguments)}
    held = other = place = 0
    while True:
        what, yes, no, operand = code[place]
        place += 1
        if what == rules.RETURN:
            return operand
        if what == rules.LOAD:
            held = words.get(operand, 0)
        elif what == rules.LOAD_VALUE:
            held = operand
        elif what == rules.TO_X:
            other = held
        elif what == rules.AND:
            held &= operand
        elif what in (rules.SHIFT, rules.SHIFT_BY_X):
            held >>= operand if what == rules.SHIFT else other
        elif what == rules.JUMP:
            place += operand
        else:
            taken = {rules.EQUAL: held == operand, rules.AT_LEAST: held >= operand, rules.ANY_BIT: held & operand}[what]
            place += yes if taken else no


OWN = 1234
SPARED = (1, 77)
FORK, THREAD = signal.SIGCHLD, 0x3D0F00
SIGNALS = ("kill", "tkill", "tgkill", "prlimit64", "sched_setaffinity")
ARGUMENTS: dict[str, list[tuple[int, ...]]] = {
    "clone": [(FORK,), (THREAD,), (FORK | 0x10000000,), (THREAD | 0x20000,), (FORK | 0x8000,), (THREAD & ~0x400,)],
    "mmap": [
        *((0, 1 << 30, 3, 0x22), (0, 1 << 30, 1, 1), (0, 4096, 3, 0x21), (0, 4097, 3, 0x21), (0, 1 << 32, 3, 0x21)),
        *((0, 4096, 3, 0x23), (0, 1 << 21, 3, 0x40022), (0, 1 << 21, 3, 0x40001)),
    ],
    "close_range": [(3, 9, 0), (3, 9, 2), (3, 9, 4), (3, 9, 6)],
    **{name: [(0,), (1,), (77,), (OWN,), (OWN + 1,), (0xFFFFFFFF,)] for name in SIGNALS},
    "fcntl": [(0, 1), (0, 8), (0, 10), (0, 15)],
    "ioctl": [(0, 0x5401), (0, 0x5412)],
    "prctl": [(1,), (4,), (15,)],
    "socketpair": [(1, 1), (1, 0x80001), (1, 2), (2, 1)],
    "getsockopt": [(0, 1, 3), (0, 1, 17)],
    "mknod": [(0, 0o10644), (0, 0o100644), (0, 0o20644), (0, 0o140644)],
    "mknodat": [(0, 0, 0o10644), (0, 0, 0o60644)],
    "setpriority": [(0, 0), (0, 1), (1, 0), (2, 0)],
    "utimensat": [(0, 0, 0), (0, 0, 4096)],
    "execveat": [(EXEC_DESCRIPTOR, 0, 0, 0, 0x1000), (EXEC_DESCRIPTOR, 0, 0, 0, 0), (5, 0, 0, 0, 0x1000)],
}
ALLOWED: dict[str, dict[str, set[tuple[int, ...]]]] = {
    "program": {
        "clone": {(THREAD,)},
        "mmap": {(0, 1 << 30, 3, 0x22), (0, 1 << 30, 1, 1), (0, 4096, 3, 0x21), (0, 4096, 3, 0x23)},
        "close_range": {(3, 9, 0), (3, 9, 4)},
        "kill": {(0,), (OWN,)},
        "prlimit64": {(0,), (OWN,)},
        "sched_setaffinity": {(0,), (OWN,)},
        "tkill": {(OWN,)},
        "tgkill": {(OWN,)},
        "fcntl": {(0, 1)},
        "ioctl": {(0, 0x5401)},
        "prctl": {(15,)},
        "socketpair": {(1, 1), (1, 0x80001)},
        "getsockopt": {(0, 1, 3)},
        "mknod": {(0, 0o10644)},
        "mknodat": {(0, 0, 0o10644)},
        "setpriority": {(0, 0)},
    },
    "forks": {"clone": {(FORK,), (THREAD,)}, **{name: {(0,), (OWN,), (OWN + 1,)} for name in SIGNALS}},
    "binary": {"execveat": {(EXEC_DESCRIPTOR, 0, 0, 0, 0x1000)}},
}
"""What of these may pass, told apart from how the filter is built."""


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("kind", ["python", "binary"])
@pytest.mark.parametrize("spared", [(), SPARED], ids=["alone", "forks"])
@pytest.mark.parametrize("owns", [True, False], ids=["own files", "others' files"])
def test_the_filter_allows_what_is_listed_and_nothing_else(
    machine: str, kind: str, spared: tuple[int, ...], owns: bool
) -> None:
    code, own, numbers = build(kind, OWN, machine, spared, owns), AUDIT_ARCH[machine], NUMBERS[machine]
    assert len(code) < 256, "the kernel makes it for each test"
    names = {number: name for name, number in numbers.items()}
    parts = ("program", *(("forks",) if spared else ()), kind)
    allowed = {name: passing for part in parts for name, passing in ALLOWED.get(part, {}).items()}
    plain = {*rules.PLAIN, *(rules.FORKING if spared else ()), *(rules.ATTRIBUTES if owns else ())}
    answers = {name: answer for answer, answered in rules.ANSWERS.items() for name in answered}
    answers |= {} if owns else dict.fromkeys(rules.MODES, rules.DONE)
    for number in (*range(600), 0x40000000, 0x40000000 | 44, 0xFFFFFFFF):
        name = names.get(number, "")
        for arguments in ARGUMENTS.get(name, [(0,)]):
            refused = rules.DONE if name == "utimensat" and any(arguments) else answers.get(name, EPERM)
            expected = ALLOW if name in plain or arguments in allowed.get(name, set()) else refused
            assert answer_of(code, number, own, arguments) == expected, (name or number, arguments)
    assert answer_of(code, 0, 0x40000003, (0,)) == rules.KILL, "another machine's calls"


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_compiler_may_start_processes_and_little_else(machine: str) -> None:
    code, own, numbers = build("compiler", OWN, machine, owns=False), AUDIT_ARCH[machine], NUMBERS[machine]
    passing = {name for name, number in numbers.items() if answer_of(code, number, own, (FORK,) * 6) == ALLOW}
    checked = {"fcntl", "ioctl", "prctl", "socketpair", "getsockopt", "sched_setaffinity", "mmap", "close_range"}
    assert passing - checked == set(rules.COMPILER) & numbers.keys()
