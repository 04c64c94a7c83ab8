"""Lists the doctor's attempts in Python and C++.

None harms the host if it succeeds: changes stay in ``{folder}``, signals have number 0, ports receive nothing. A
refused attempt raises in Python and is negative in C++.
"""

from __future__ import annotations

from curation.verify.sandbox.outcomes import Ending

PYTHON = """
import ctypes, os, socket, sys
def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def changed(path):
    before = os.stat(path).st_mode
    os.chmod(path, 0o777)
    if os.stat(path).st_mode == before:
        raise PermissionError("it stays as it is")
def copied():
    with open("copy", "wb", opener=lambda name, flags: os.open(name, flags, 0o700)) as file:
        file.write(open("own", "rb").read())
    return os.open("copy", os.O_RDONLY)
try:
    result = {act}
    print("REACHED", repr(result)[:200])
except (OSError, ValueError) as error:
    print("refused", type(error).__name__ + ":", error)
"""

ATTEMPTS = (
    (
        "network: TCP",
        "connect to a listening port of this machine",
        "socket.create_connection(('127.0.0.1', {port}), 1)",
        "internet(SOCK_STREAM)",
    ),
    (
        "network: UDP",
        "open a socket that sends datagrams",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('127.0.0.1', {port}))",
        "internet(SOCK_DGRAM)",
    ),
    (
        "network: unix sockets",
        "connect to a socket file",
        "socket.socket(socket.AF_UNIX).connect('{folder}/socket')",
        "local(socket(AF_UNIX, SOCK_STREAM, 0), folder)",
    ),
    (
        "network: a pair of sockets",
        "send from a pair to a socket file",
        "socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b'x', '{folder}/socket')",
        "datagram(folder)",
    ),
    ("host files: reading", "read a file of this user", "open('{folder}/secret').read()", 'file(folder, "/secret", 0)'),
    ("host files: system", "read /etc/passwd", "open('/etc/passwd').read(100)", 'file("/etc", "/passwd", 0)'),
    (
        "host files: writing",
        "write beside a file of this user",
        "open('{folder}/written', 'w')",
        'file(folder, "/written", O_WRONLY | O_CREAT)',
    ),
    (
        "host files: the toolchain",
        "open a file of the libraries for writing",
        "open(os.__file__, 'r+')",
        'file("/usr/lib", "/os-release", O_WRONLY)',
    ),
    (
        "host files: attributes",
        "chmod a file of this user",
        "changed('{folder}/secret')",
        'changed(folder + "/secret")',
    ),
    (
        "environment: of others",
        "read the environment of a process",
        "open('/proc/{pid}/environ').read(100)",
        'file("/proc/" + to_string(pid), "/environ", 0)',
    ),
    (
        "processes: visible",
        "look into a process of this user",
        "open('/proc/{pid}/cmdline').read(100)",
        'file("/proc/" + to_string(pid), "/cmdline", 0)',
    ),
    ("processes: fork", "fork", "os.fork()", "fork()"),
    (
        "processes: exec",
        "execute a program",
        "os.execv('/bin/sh', ['sh', '-c', 'echo REACHED'])",
        'execl("/bin/sh", "sh", "-c", "echo REACHED", (char *)0)',
    ),
    (
        "processes: exec of an own file",
        "execute a copy of a program by its descriptor",
        "os.execve(copied(), ['x', 'REACHED'], {{}})",
        "copied()",
    ),
    ("signals", "ask whether a process of this user can be signalled", "os.kill({pid}, 0)", "kill(pid, 0)"),
    ("signals: the parent", "the same of the parent", "os.kill(os.getppid(), 0)", "kill(getppid(), 0)"),
    (
        "mounts",
        "cover a folder of this user by an empty one",
        "checked(ctypes.CDLL(None, use_errno=True).mount(b'none', b'{folder}/covered', b'tmpfs', 0, None))",
        'mount("none", (folder + "/covered").c_str(), "tmpfs", 0, 0)',
    ),
    (
        "namespaces",
        "make a user and a mount namespace",
        "checked(ctypes.CDLL(None, use_errno=True).unshare(0x10020000))",
        "unshare(CLONE_NEWUSER | CLONE_NEWNS)",
    ),
    ("devices", "open the memory of the machine", "open('/dev/mem', 'rb')", 'file("/dev", "/mem", 0)'),
    ("memory files", "memfd_create", "os.memfd_create('x')", 'syscall(SYS_memfd_create, "x", 0)'),
    (
        "ptrace",
        "ask to be traced by the parent",
        "checked(ctypes.CDLL(None, use_errno=True).ptrace(0, 0, 0, 0))",
        "ptrace(PTRACE_TRACEME, 0, 0, 0)",
    ),
)
"""Name, what is tried, the act in Python, the act in C++."""

SHUTTING = """
import contextlib, os
print(oct(os.stat(".").st_mode), open("f", "x").write("x"))
for mode in (0o7777, 0):
    for path in ("f", ".", 0, 1, 2):
        with contextlib.suppress(OSError):
            os.chmod(path, mode)
        with contextlib.suppress(OSError):
            os.utime(path, (9, 9))
"""
"""What a test finds, then all that it can shut or date of its own; a C++ program besides itself."""

LIMITED = (
    (
        "limit: memory",
        Ending.MEMORY_LIMIT,
        "take 1 GiB where 100 MiB are allowed",
        "b = b'x' * (1 << 30)",
        "memset(malloc(1 << 30), 1, 1 << 30) != nullptr",
    ),
    ("limit: CPU time", Ending.CPU_LIMIT, "loop where 1 s is allowed", "while True: pass", "endless()"),
    (
        "limit: wall time",
        Ending.WALL_LIMIT,
        "sleep where 2 s are allowed",
        "import time; time.sleep(60)",
        "sleep(60)",
    ),
    (
        "limit: output",
        Ending.OUTPUT_LIMIT,
        "print for ever where 1 MiB is allowed",
        "while True: print('x' * 9999)",
        "printing()",
    ),
)
"""Name, how it must end, what is tried, the program in Python, the act in C++."""

_HEAD = r"""
#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
using namespace std;
extern char **environ;
static int port, pid;
static string folder;
static long file(string place, string name, int how) {
    int opened = open((place + name).c_str(), how, 0600);
    char byte;
    return opened < 0 ? -1 : how ? 0 : read(opened, &byte, 1);
}
static long changed(string path) {
    struct stat before, after;
    if (stat(path.c_str(), &before) < 0 || chmod(path.c_str(), 0777) < 0) return -1;
    errno = EPERM;
    return stat(path.c_str(), &after) < 0 || before.st_mode == after.st_mode ? -1 : 0;
}
/* What a test finds, then all that it can shut or date of its own: its folder, a file, this program, its streams. */
static long shut() {
    struct stat found;
    stat(".", &found);
    printf("%o %ld", found.st_mode, file("f", "", O_WRONLY | O_CREAT | O_EXCL));
    for (int mode : {07777, 0}) {
        for (const char *path : {"f", ".", "/proc/self/exe"}) chmod(path, mode), utimensat(AT_FDCWD, path, nullptr, 0);
        for (int stream : {0, 1, 2}) fchmod(stream, mode), futimens(stream, nullptr);
    }
    return 0;
}
static long internet(int kind) {
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(port);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int made = socket(AF_INET, kind, 0);
    return made < 0 ? -1 : connect(made, (sockaddr *)&there, sizeof there);
}
static long local(int made, string place) {
    sockaddr_un there{};
    there.sun_family = AF_UNIX;
    strncpy(there.sun_path, (place + "/socket").c_str(), sizeof there.sun_path - 1);
    return made < 0 ? -1 : connect(made, (sockaddr *)&there, sizeof there);
}
static long datagram(string place) {
    int made[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, made) == 0 && local(made[0], place) == 0) return 0;
    return socketpair(AF_UNIX, SOCK_STREAM, 0, made) < 0 ? -1 : local(made[0], place);
}
/* A copy of this program lies beside it; one of its own making, executed by each number a descriptor may have. */
static long copied() {
    char block[1 << 16];
    int from = open("own", O_RDONLY), to = open("copy", O_WRONLY | O_CREAT, 0700);
    for (long size; to >= 0 && (size = read(from, block, sizeof block)) > 0;)
        if (write(to, block, size) != size) return -1;
    close(to);
    const char *words[] = {"x", "REACHED", 0};
    for (const char *name : {"own", "copy"}) {
        int opened = open(name, O_RDONLY);
        for (int number = 0; opened >= 0 && number < 1024; number++) {
            if (number < 3 || dup2(opened, number) < 0) continue;
            syscall(SYS_execveat, number, "", words, environ, AT_EMPTY_PATH);
            if (number != opened) close(number);
        }
        execv(name, (char **)words);
    }
    return -1;
}
static long endless() { for (volatile int turn = 0;; turn = 0); }
static long printing() { for (;;) puts(string(9999, 'x').c_str()); }
static long names() {
    for (char **name = environ; *name; name++) printf("%.*s ", (int)strcspn(*name, "="), *name);
    return 0;
}
static long left() {
    DIR *here = opendir(".");
    for (dirent *entry; (entry = readdir(here));) if (entry->d_name[0] != '.') printf("%s ", entry->d_name);
    return file(".", "/left", O_WRONLY | O_CREAT) * 0;
}
"""
_MAIN = r"""
int main(int count, char **words) {
    if (count == 2) return puts(words[1]), 0;
    string which = words[1];
    port = atoi(words[2]), folder = words[3], pid = atoi(words[4]);
    long result = -2;
    errno = 0;
{cases}
    if (result < 0) return printf("refused %s\n", strerror(errno)), 0;
    return printf("REACHED %ld\n", result), 0;
}
"""


def cpp_program() -> str:
    """Return the C++ program; arguments are attempt, port, folder, process number."""
    acts = {name: act for name, _, _, act in ATTEMPTS} | {name: act for name, _, _, _, act in LIMITED}
    acts |= {"names": "names()", "left": "left()", "shut": "shut()"}
    cases = "\n".join(f'    if (which == "{name}") result = {act};' for name, act in acts.items())
    return _HEAD + _MAIN.replace("{cases}", cases)
