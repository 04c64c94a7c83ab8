"""Attacks on memory, output and time; and what must pass although a careless limit would kill it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from curation.verify.sandbox import Ending, Limits, Sandbox
from tests.curation.verify.sandbox.rungs import STRONGEST, Runner, on

MEMORY = Limits(cpu_s=8.0, wall_s=20.0, memory_mb=300)


def test_shared_memory_that_is_not_resident_is_refused(python: Runner) -> None:
    """It took 800 MB under a limit of 300 and exited with 0: pages of shared memory stay when they are let go of."""
    source = "import mmap\nkept = []\nfor _ in range(8):\n    m = mmap.mmap(-1, 100 << 20)\n"
    source += "    for i in range(0, len(m), 4096): m[i] = 1\n    m.madvise(mmap.MADV_DONTNEED); kept.append(m)"
    assert b"PermissionError" in python(source, limits=MEMORY).stderr
    page = "import mmap\nm = mmap.mmap(-1, 4096)\nm[:2] = b'ab'\nprint(m[:2])"
    assert python(page).stdout == b"b'ab'\n"
    zero = "import mmap, os\nmmap.mmap(os.open('/dev/zero', os.O_RDWR), 1 << 20)"
    assert python(zero).exit_code == 1
    wide = "import ctypes, mmap\nmap = ctypes.CDLL(None, use_errno=True).mmap\nmap.restype = long = ctypes.c_long\n"
    wide += "for size, flags in ((1 << 32 | 1, 0x21), (4096, 0x40022)):\n"
    wide += "    print(map(long(0), long(size), 3, flags, -1, long(0)), ctypes.get_errno())"
    assert python(wide).stdout == b"-1 1\n-1 1\n", "a length whose low half is small; huge pages"


LEADERLESS = """#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
void *work(void *) {
    for (int i = 0; i < 20; i++) memset(malloc(50 << 20), 1, 50 << 20), usleep(20000);
    puts("done"); fflush(stdout); _exit(0);
}
int main() { pthread_t t; pthread_create(&t, 0, work, 0); syscall(SYS_exit, 0); }
"""


def test_memory_counts_when_the_first_thread_has_ended(cpp: Runner) -> None:
    ran = cpp(LEADERLESS, limits=MEMORY)
    assert (ran.ending, ran.stdout) == (Ending.MEMORY_LIMIT, b""), "it was seen at the end only, at 1,002 MB"
    assert ran.memory_mb < 600


def test_descriptors_of_threads_are_those_of_the_process(python: Runner) -> None:
    """So what a thread holds is seen; one that had a table of its own would hide files, sockets and pipes."""
    source = "import ctypes\ncall = ctypes.CDLL(None, use_errno=True).syscall\n"
    source += "print(call(436, 60, 60, 2), ctypes.get_errno(), call(436, 60, 60, 0))"
    assert python(source).stdout == b"-1 1 0\n", "close_range(2) with CLOSE_RANGE_UNSHARE"


def test_dev_shm_is_not_the_hosts(python: Runner, box: Sandbox) -> None:
    ran = python("print(open('/dev/shm/goldilocks-attack', 'wb').write(b'x'))")  # `python` looks for what is left
    assert (b"Error" in ran.stderr) == (box.rung == "landlock")
    assert not Path("/dev/shm/goldilocks-attack").exists()


@on(STRONGEST)
def test_250_mb_pass(python: Runner) -> None:
    ran = python("b = b'x' * (250 << 20); print(len(b))", limits=MEMORY)
    assert (ran.ending, ran.stdout) == (Ending.EXITED, b"262144000\n")
    assert 250 <= ran.memory_mb <= 300


@on(STRONGEST)
def test_a_huge_thread_stack_passes(python: Runner) -> None:
    source = "import sys, threading\nsys.setrecursionlimit(10**6); threading.stack_size(512 << 20)\n"
    source += "def f(n): return 0 if n == 0 else 1 + f(n - 1)\n"
    source += "t = threading.Thread(target=lambda: print(f(50000))); t.start(); t.join()"
    assert python(source, limits=MEMORY).stdout == b"50000\n"


@on(STRONGEST)
def test_deep_recursion_passes(python: Runner) -> None:
    source = (
        "import sys\nsys.setrecursionlimit(10**6)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(100000))"
    )
    assert python(source, limits=MEMORY).stdout == b"100000\n"


@on(STRONGEST)
def test_endless_recursion_is_the_programs_error(python: Runner) -> None:
    ran = python("def f(): return f()\nf()")
    assert (ran.ending, ran.exit_code) == (Ending.EXITED, 1)
    assert b"RecursionError" in ran.stderr


@on(STRONGEST)
def test_numpy_passes(box: Sandbox) -> None:
    pytest.importorskip("numpy")
    source = "import numpy as np; print(int(np.ones((2000, 2000)).sum()), int(np.linalg.det(np.eye(3))))"
    (ran,) = box.run_python(source, [b""], MEMORY, numpy=True)
    assert (ran.ending, ran.stdout) == (Ending.EXITED, b"4000000 1\n"), ran


@pytest.mark.slow
@on(STRONGEST)
def test_four_threads_pass(cpp: Runner) -> None:
    source = """#include <thread>
#include <vector>
#include <atomic>
#include <cstdio>
int main(){ std::atomic<int> n{0}; std::vector<std::thread> t; for(int i=0;i<4;i++) t.emplace_back([&]{ n++; });
for(auto& x: t) x.join(); std::printf("%d\\n", n.load()); }"""
    assert cpp(source, limits=MEMORY).stdout == b"4\n"


@on(STRONGEST)
def test_untouched_arrays_pass(cpp: Runner) -> None:
    source = '#include <cstdio>\nstatic char big[400 << 20];\nint main(){ big[5] = 1; std::puts("ok"); return 0; }'
    ran = cpp(source, limits=MEMORY)
    assert (ran.stdout, ran.ending) == (b"ok\n", Ending.EXITED)


@on(STRONGEST)
def test_170_mb_of_recursion_pass(cpp: Runner) -> None:
    source = """#include <cstdio>
#include <cstring>
__attribute__((noinline)) int f(int n){ volatile char b[1024]; b[0] = (char)n; b[1023] = 1;
return n == 0 ? 0 : b[1023] + f(n - 1) + (b[0] & 0); }
int main(){ std::printf("%d\\n", f(160000)); }"""
    assert cpp(source, limits=MEMORY).stdout == b"160000\n"


@on(STRONGEST)
def test_any_bytes_come_out_as_they_are(python: Runner) -> None:
    for data in (b"\0\xff\xfe\n", "ü\u2028😀".encode(), b"\xed\xa0\x80", b"no newline"):
        assert python(f"import sys; sys.stdout.buffer.write({data!r})").stdout == data


@on(STRONGEST)
def test_closed_stdout_is_an_empty_output(python: Runner) -> None:
    ran = python("import os; os.close(1)")
    assert (ran.ending, ran.exit_code, ran.stdout) == (Ending.EXITED, 0, b"")


@on(STRONGEST)
def test_input_that_is_never_read(python: Runner) -> None:
    assert python("print(1)", b"x" * (10 << 20)).stdout == b"1\n"


@on(STRONGEST)
def test_ten_megabytes_in_and_out(python: Runner) -> None:
    data = b"0123456789\n" * 1_000_000
    ran = python("import sys; sys.stdout.write(sys.stdin.read())", data, Limits(cpu_s=8))
    assert ran.stdout == data


ENDINGS = {
    "import os; os._exit(0)": (Ending.EXITED, 0, None),
    "import sys; sys.exit()": (Ending.EXITED, 0, None),
    "import sys; sys.exit(3)": (Ending.EXITED, 3, None),
    "import sys; sys.exit('no')": (Ending.EXITED, 1, None),
    "exit(2)": (Ending.EXITED, 2, None),
    "raise SystemExit": (Ending.EXITED, 0, None),
    "print(1); 1/0": (Ending.EXITED, 1, None),
    "import os; os.abort()": (Ending.SIGNALED, None, signal.SIGABRT),
    "import ctypes; ctypes.string_at(0)": (Ending.SIGNALED, None, signal.SIGSEGV),
    "import os; os.kill(os.getpid(), 15)": (Ending.SIGNALED, None, signal.SIGTERM),
    "this is no python": (Ending.EXITED, 1, None),
    "\0": (Ending.EXITED, 1, None),
}


def test_an_end_is_told_as_it_was(python: Runner) -> None:
    for source, ended in ENDINGS.items():
        ran = python(source)
        assert (ran.ending, ran.exit_code, ran.signal) == ended, (source, ran)


BOMBS = ["(" * 100_000, "-" * 3_000_000 + "1", "a=1\n" * 100_000]


@pytest.mark.parametrize("source", BOMBS)
@on(STRONGEST)
def test_a_parser_bomb_harms_only_itself(python: Runner, source: str) -> None:
    assert python(source, limits=Limits(cpu_s=2)).ending is not Ending.BROKEN


@on(STRONGEST)
def test_a_recursion_limit_counts_from_the_program(python: Runner) -> None:
    source = "import sys\nsys.setrecursionlimit(13)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\n"
    source += "print(f(10), sys.getrecursionlimit())\ntry: print(f(50))\nexcept RecursionError: print('deep')"
    assert python(source).stdout == b"10 13\ndeep\n"
