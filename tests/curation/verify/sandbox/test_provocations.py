# ruff: noqa: E501  programs stand on one line each
"""What provokes a box ends as it would outside: by its own exit, its own signal, or a limit, and never as BROKEN.

Ways that harm nobody outside stand among the styles of `tests/curation/verify/programs`, where a bare interpreter tells
what is right; here stand those that would, and that end by a limit. After each the same slot serves the next program.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from curation.verify.sandbox import Ending, Limits, RunResult, Sandbox

Runner = Callable[..., RunResult]
LIMITS = Limits(cpu_s=1.0, wall_s=1.0, memory_mb=200, output_bytes=1 << 20, file_mb=16)
WORDS = {
    Ending.CPU_LIMIT: "time",
    Ending.WALL_LIMIT: "time",
    Ending.MEMORY_LIMIT: "memory",
    Ending.OUTPUT_LIMIT: "output",
    Ending.SIGNALED: "signal",
    Ending.BROKEN: "broken",
}


def ending(ran: RunResult) -> str:
    return WORDS.get(ran.ending) or ("well" if ran.exit_code == 0 else "badly")


PYTHON = {
    "all signals to all": ("well", "import os\nfor s in range(1, 65):\n    for who in (os.getppid(), 1, 2, -1):\n        try: os.kill(who, s)\n        except OSError: pass"),
    "a fork at the end": ("well", "import atexit, os\ndef end():\n    try: os.fork() or os._exit(0)\n    except OSError: pass\natexit.register(end)"),
    "all descriptors closed": ("well", "import os\nos.closerange(0, 1 << 16)"),
    "standard error filled": ("output badly", "import os\nwhile True: os.write(2, bytes(65536))"),
    "ten gigabytes at once": ("output badly", "import os\nb = bytes(1 << 24)\nwhile True: os.write(1, b)"),
    "stopped": ("time", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"),
    "stopped as by a terminal": ("time", "import os, signal\nos.kill(os.getpid(), signal.SIGTSTP)\nos.kill(os.getpid(), signal.SIGSTOP)"),
    "a handler that does not return": ("time", "import signal\ndef ring(*_):\n    while True: pass\nsignal.signal(signal.SIGALRM, ring)\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\nsignal.pause()"),
    "an exit function that does not return": ("time", "import atexit, time\natexit.register(time.sleep, 99)"),
    "a finaliser that does not return": ("time", "import time\nclass A:\n    def __del__(self): time.sleep(99)\na = A()"),
    "a thread that is waited for": ("time", "import threading\nthreading.Thread(target=threading.Event().wait).start()"),
    "a lock taken twice": ("time", "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()"),
    "the folder removed": ("well", "import os, shutil\nhere = os.getcwd()\nshutil.rmtree(here, ignore_errors=True)\ntry: os.rmdir(here)\nexcept OSError: pass"),
    "the folder moved": ("well", "import os\nfor to in ('/tmp/zz', '../zz', '/zz'):\n    try: os.rename(os.getcwd(), to)\n    except OSError: pass"),
    "the folder shut": ("well", "import os\ntry: os.chmod('.', 0)\nexcept OSError: pass"),
    "a link in the folder's place": ("well", "import os\nhere = os.getcwd()\ntry: os.rmdir(here), os.symlink('/', here)\nexcept OSError: pass"),
    "a queue that nobody reads": ("time badly", "import os\nos.mkfifo('f')\nopen('f').read()"),
    "files that are pipes and loops": ("well", "import os\nos.symlink('b', 'a'), os.symlink('a', 'b'), os.mkdir('c'), os.symlink('../c', 'c/d')\nos.link('a', 'e')"),
    "a file of a terabyte": ("badly output", "f = open('f', 'wb')\nf.seek(1 << 40)\nf.write(b'x')\nf.flush()"),
    "a hole of a terabyte in the output": ("badly output", "import os\nos.lseek(1, 1 << 40, 0)\nos.write(1, b'x')"),
    "the output written over": ("well", "import os\nos.write(1, b'x' * 9999), os.lseek(1, 0, 0), os.write(1, b'y')"),
    "locks on all": ("well", "import fcntl, os\nf = open('l', 'w')\nfor fd in (f.fileno(), 0, 1, 2):\n    try: fcntl.flock(fd, fcntl.LOCK_EX)\n    except OSError: pass"),
    "a group and session of its own": ("well", "import os\nfor act in (lambda: os.setpgid(0, 0), os.setsid, lambda: os.tcsetpgrp(0, 1)):\n    try: act()\n    except OSError: pass"),
    "descriptors of every kind": ("well", "import os, select\nfor make in (os.pipe, select.epoll, lambda: os.eventfd(1), lambda: os.dup(0), lambda: os.memfd_create('x')):\n    kept = []\n    try:\n        while True: kept.append(make())\n    except OSError: pass\n    for one in kept: one.close() if hasattr(one, 'close') else os.closerange(min(one), max(one) + 1) if isinstance(one, tuple) else os.close(one)"),
    "all of the address space": ("well badly", "import mmap\nkept = []\ntry:\n    while True: kept.append(mmap.mmap(-1, 1 << 28))\nexcept (OSError, MemoryError, ValueError): pass"),
    "no limits left to itself": ("badly time", "import resource\nfor r in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_STACK, resource.RLIMIT_FSIZE):\n    resource.setrlimit(r, (0, 0))\nprint('x' * 99999)"),
    "the sandbox's own exit code": ("badly", "import os\nfor fd in range(3, 600):\n    try: os.write(fd, b'seccomp: error 1')\n    except OSError: pass\nos._exit(70)"),
    "who forks it, by its exit code": ("badly", "import os\nos._exit(71)"),
    "recursion of the collector": ("well memory", "a = None\nfor _ in range(10 ** 6): a = (a,)\ndel a"),
    "a jump to nowhere": ("signal", "import ctypes\nctypes.CDLL(None).longjmp(ctypes.create_string_buffer(512), 1)"),
    "a crash that is reported": ("signal", "import faulthandler\nfaulthandler.enable()\nfaulthandler._sigsegv()"),
    "its own files in /proc written": ("well signal badly", "for name in ('mem', 'fd/0', 'fd/1', 'exe', 'root', 'cwd', 'oom_score_adj', 'timerslack_ns', 'comm'):\n    try: open('/proc/self/' + name, 'r+b').write(b'9')\n    except (OSError, ValueError): pass"),
    "the clock": ("well", "import time\nfor clock in range(12):\n    try: time.clock_settime(clock, 0)\n    except OSError: pass"),
    "a hundred thousand settings": ("well", "import os\nfor n in range(9999): os.environ[f'A{n}'] = 'x' * 99\ntry: os.execv('/bin/true', ['true'])\nexcept OSError: pass"),
}  # fmt: skip

CPP = {
    "vfork and exec": ("well badly", 'if (vfork() == 0) { execl("/bin/true", "true", (char *)0); _exit(3); }'),
    "ptrace": ("well", "ptrace(PTRACE_TRACEME, 0, 0, 0); ptrace(PTRACE_ATTACH, getppid(), 0, 0);"),
    "prctl": ("well", "prctl(PR_SET_DUMPABLE, 0); prctl(PR_SET_PDEATHSIG, 0); prctl(PR_SET_CHILD_SUBREAPER, 1); prctl(PR_SET_SECCOMP, 1);"),
    "a name like a line of /proc": ("well", 'prctl(PR_SET_NAME, ") Z 1 1 1\\n9 9"); usleep(50000);'),
    "no name": ("well", 'prctl(PR_SET_NAME, ""); usleep(50000);'),
    "descriptors over a pair": ("well", "int s[2]; socketpair(AF_UNIX, SOCK_STREAM, 0, s); for (int i = 0; i < 999; i++) { msghdr m{}; char b[64] = {}, k[CMSG_SPACE(4)] = {}; iovec v{b, 1}; m.msg_iov = &v; m.msg_iovlen = 1; m.msg_control = k; m.msg_controllen = sizeof k; cmsghdr *h = CMSG_FIRSTHDR(&m); *h = {CMSG_LEN(4), SOL_SOCKET, SCM_RIGHTS}; memcpy(CMSG_DATA(h), &s[0], 4); sendmsg(s[1], &m, MSG_DONTWAIT); }"),
    "timers that interrupt": ("well", "signal(SIGALRM, [](int) {}); itimerval t{{0, 100}, {0, 100}}; setitimer(ITIMER_REAL, &t, 0); timespec s{0, 50000000}; while (nanosleep(&s, &s)) ;"),
    "all signals to itself": ("well", "for (int s = 1; s < 65; s++) if (s != 9 && s != 19 && (s < 32 || s > 33)) { signal(s, SIG_IGN); syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), s); }"),
    "all memory unmapped": ("signal", "munmap((void *)4096, 0x7ffffffff000 - 4096);"),
    "its stack unmapped": ("signal", "char x; munmap((void *)((long)&x & ~4095L), 1 << 20); abort();"),
    "all of the address space": ("well", "for (int i = 0; i < 99999 && mmap(0, 1 << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED; i++) ;"),
    "many small maps": ("well memory", "for (int i = 0; i < 70000; i++) mmap(0, 4096, i % 2 ? PROT_READ : PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);"),
    "a thread that ends all": ("badly", "std::thread([] { _exit(9); }).join(); for (;;) ;"),
    "a main thread that ends first": ("badly", "std::thread([] { usleep(50000); _exit(9); }).detach(); pthread_exit(0);"),
    "a thread that spins behind it": ("time", "std::thread([] { for (volatile int i = 0;; i++) ; }).detach(); pthread_exit(0);"),
    "a thread that sleeps behind it": ("time", "std::thread([] { for (;;) pause(); }).detach(); pthread_exit(0);"),
    "exit functions without end": ("time", "atexit([] { for (;;) ; });"),
    "an exit code above 255": ("well", "exit(512);"),
    "the sandbox's exit code": ("badly", "_exit(70);"),
    "its own file executed": ("well badly signal time", 'char *e[] = {nullptr}; syscall(SYS_execveat, 511, "", e, e, 0x1000);'),
    "endless recursion": ("signal", "std::function<int(int)> f = [&](int n) { volatile char a[4096] = {1}; return f(n + 1) + a[0]; }; exit(f(0));"),
    "endless memory": ("memory signal", "std::vector<std::vector<char>> v; for (;;) v.emplace_back(1 << 20, 1);"),
    "a signal of its own": ("signal", "raise(40);"),
    "the signal of a refused call": ("signal", "raise(SIGSYS);"),
    "the signal of a CPU limit": ("signal time", "raise(SIGXCPU);"),
    "the output sent in a circle": ("well output", "for (int i = 0; i < 999; i++) sendfile(1, 0, 0, 1 << 30);"),
    "watchers": ("well", "for (int i = 0; i < 999; i++) { inotify_init(); eventfd(0, 0); signalfd(-1, nullptr, 0); }"),
    "a limit on descriptors": ("well", "rlimit r{0, 0}; setrlimit(RLIMIT_NOFILE, &r); setrlimit(RLIMIT_NPROC, &r);"),
}  # fmt: skip

HEADERS = (
    "atomic cstdio cstdlib cstring functional thread vector fcntl.h signal.h unistd.h sys/eventfd.h sys/inotify.h "
    "sys/mman.h sys/prctl.h sys/ptrace.h sys/resource.h sys/sendfile.h sys/signalfd.h sys/socket.h sys/syscall.h "
    "sys/time.h sys/wait.h"
).split()
SOURCE = "".join(f"#include <{header}>\n" for header in HEADERS)
SOURCE += "static void (*const ways[])() = {\n" + "".join(f"[] {{ {body} }},\n" for _, body in CPP.values()) + "};\n"
SOURCE += "int main() { char digits[8] = {}; if (read(0, digits, 7) < 1) return 99; ways[atoi(digits)](); return 0; }\n"
"""One program, told by its input which of the ways it goes: compiled once per rung."""


@pytest.mark.parametrize("way", PYTHON)
def test_what_a_python_program_does_is_its_own_end(python: Runner, way: str) -> None:
    expected, source = PYTHON[way]
    ran = python(source, b"abc\n", LIMITS)
    assert ending(ran) in expected.split(), ran


@pytest.mark.parametrize("way", CPP)
def test_what_a_binary_does_is_its_own_end(box: Sandbox, cpp: Runner, way: str) -> None:
    ran = cpp(SOURCE, b"%d" % list(CPP).index(way), LIMITS)
    assert ending(ran) in CPP[way][0].split(), ran
    (after,) = box.run_python("import os; print(os.listdir('.'))", [b""], LIMITS)
    assert after.stdout == b"[]\n"


ORPHANS = {
    "that sleep": "time.sleep(600)",
    "that stopped": "os.kill(os.getpid(), signal.SIGSTOP)",
    "that ignore all": "[signal.signal(s, signal.SIG_IGN) for s in (1, 2, 3, 13, 15)], time.sleep(600)",
    "that write on": "[os.write(1, b'x') or time.sleep(0.001) for _ in range(10 ** 6)]",
    "that start others": "[os.fork() or time.sleep(0.001) for _ in range(3)]",
}


@pytest.mark.parametrize("way", ORPHANS)
def test_orphans_are_no_bodys_burden(box: Sandbox, python: Runner, way: str) -> None:
    if not box.forks:
        pytest.skip("no program may start processes there")
    source = f"import os, signal, time\nif os.fork() == 0:\n    if os.fork() == 0: {ORPHANS[way]}\n    os._exit(0)\nos.wait()"
    ran = python(source, limits=LIMITS, forks=True)
    assert ending(ran) == "well", ran
