"""Programs made of dice: whatever they do is their own end, and the box works afterwards. Seeded: it repeats itself."""

from __future__ import annotations

import random
import struct

import pytest

from curation.verify.sandbox import Ending, Limits, RunResult, Sandbox
from curation.verify.sandbox.inside.syscalls import NUMBERS, X86_64
from tests.curation.verify.sandbox.rungs import LANDLOCK, USER, on

LIMITS = Limits(cpu_s=1.0, wall_s=1.0, memory_mb=200, output_bytes=1 << 20, file_mb=16, processes=8)
KNOWN = tuple(NUMBERS.get("x86_64", X86_64).values())

CALLER = """#include <csignal>
#include <cstdint>
#include <cstdio>
#include <unistd.h>
#include <sys/syscall.h>
static char space[1 << 16];
int main() {
    int64_t words[7];
    while (read(0, words, sizeof words) == sizeof words) {
        for (int i = 1; i < 7; i++) if (words[i] == -77) words[i] = (int64_t)space + 64 * i;
        syscall(words[0], words[1], words[2], words[3], words[4], words[5], words[6]);
    }
}"""
"""Makes the calls that its input says; -77 stands for a place in memory."""

PYTHON_CALLER = """
import ctypes, os, struct
space, call = ctypes.create_string_buffer(1 << 16), ctypes.CDLL(None).syscall
while len(words := os.read(0, 56)) == 56:
    call(*(ctypes.c_long(ctypes.addressof(space) if word == -77 else word) for word in struct.unpack("7q", words)))
"""

PIECES = (
    "os._exit({n} % 256)",
    "os.close({n} % 8)",
    "os.write({n} % 8, b'x' * {n})",
    "os.kill({n} % 7 - 1, {n} % 32)",
    "signal.signal({n} % 30 + 1, signal.SIG_IGN)",
    "os.mkdir('d{n}'), os.chdir('d{n}')",
    "open('f{n}', 'w').write('x' * {n})",
    "os.symlink('f{n}', 'l{n}'), os.rename('l{n}', 'f{n}')",
    "os.dup2({n} % 3, {n} % 70)",
    "os.fork()",
    "os.forkpty()",
    "threading.Thread(target=time.sleep, args=(0.01 * ({n} % 7),)).start()",
    "threading.Thread(target=os._exit, args=({n} % 256,)).start()",
    "resource.setrlimit({n} % 16, (0, 0))",
    "gc.collect(), sys.modules.clear()",
    "sys.stdout.close()",
    "builtins.__dict__.clear()",
    "atexit.register(os.abort)",
    "ctypes.string_at({n})",
    "os.truncate('/proc/self/fd/1', {n})",
    "fcntl.fcntl(1, {n} % 16, {n})",
    "mmap.mmap(-1, {n} << 10).write(b'x')",
    "sys.setrecursionlimit({n}), (lambda f: f(f))(lambda f: f(f))",
    "os.abort()",
    "input()",
    "exec('(' * {n})",
    "sys.exit('x' * {n})",
    "raise MemoryError({n})",
)
IMPORTS = "import atexit, builtins, ctypes, fcntl, gc, mmap, os, resource, signal, sys, threading, time\n"


def calls(dice: random.Random) -> bytes:
    """Some forty system calls, known and unknown, with arguments that often mean something."""
    told = b""
    for _ in range(40):
        number = dice.choice(KNOWN) if dice.random() < 0.8 else dice.randrange(470)
        arguments = (
            dice.choice((0, 1, 2, 3, 4, 63, 511, -1, -77, -77, -77, 4096, 17, 0x80000, dice.getrandbits(31), 1 << 40))
            for _ in range(6)
        )
        told += struct.pack("7q", number, *arguments)
    return told


def program(dice: random.Random) -> str:
    lines = [dice.choice(PIECES).format(n=dice.choice((0, 1, 2, 3, 70, 71, 77, 300, 5000, 99999))) for _ in range(8)]
    return IMPORTS + "".join(f"try: {line}\nexcept Exception: pass\n" for line in lines)


def still_works(box: Sandbox, ran: RunResult, what: object) -> None:
    assert ran.ending is not Ending.BROKEN, (what, ran)
    (after,) = box.run_python("import os\nprint(os.listdir('.'))", [b""], Limits())
    assert after.stdout == b"[]\n", (what, after)


def fuzz(box: Sandbox, seed: int, rounds: int) -> None:
    dice = random.Random(seed)
    compiled = box.compile({"m.cpp": CALLER.encode()}, ["g++", "m.cpp"])
    assert compiled.artifact is not None, compiled.log
    for _ in range(rounds):
        forks = dice.random() < 0.5
        source = program(dice)
        (ran,) = box.run_python(source, [b"one line\n"], LIMITS, forks=forks)
        still_works(box, ran, source)
        told = calls(dice)
        (ran,) = box.run_binary(compiled.artifact, [told], LIMITS, forks=forks)
        still_works(box, ran, told)
        (ran,) = box.run_python(PYTHON_CALLER, [told], LIMITS, forks=forks)
        still_works(box, ran, told)


def test_whatever_a_program_does_is_its_own_end(strongest: Sandbox) -> None:
    fuzz(strongest, 7, 8)


@pytest.mark.slow
@on(USER, LANDLOCK)
def test_whatever_a_program_does_is_its_own_end_everywhere(box: Sandbox) -> None:
    fuzz(box, 1, 8)
