"""Lists the doctor's attempts, made by a Python and a C++ program.

An attempt is a list of C library calls, refused if one returns -1. Success harms nothing: changes stay in ``{folder}``,
signals have number 0, ports receive nothing.
"""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass

from curation.verify.sandbox.inside.kernel import AT_EMPTY_PATH, NUMBER
from curation.verify.sandbox.outcomes import Ending

_ATTEMPTS = """
network: TCP | connect to a listening port of this machine | socket AF_INET SOCK_STREAM 0; connect $ INET 16
network: UDP | open a socket that sends datagrams | socket AF_INET SOCK_DGRAM 0; connect $ INET 16
network: unix sockets | connect to a socket file | socket AF_UNIX SOCK_STREAM 0; connect $ UNIX 110
network: a pair of datagrams | connect one to a socket file | socketpair AF_UNIX SOCK_DGRAM 0 @; connect * UNIX 110
network: a pair of sockets | connect one to a socket file | socketpair AF_UNIX SOCK_STREAM 0 @; connect * UNIX 110
host files: reading | read a file of this user | open '{folder}/secret 0; read $ @ 1
host files: system | read /etc/passwd | open '/etc/passwd 0; read $ @ 1
host files: writing | write a file next to one of this user | open '{folder}/written CREATE 384
host files: the toolchain | open a file of the libraries for writing | open '{library} O_RDWR
host files: attributes | chmod a file of this user | chmod '{folder}/secret 511
environment: of others | read the environment of a process | open '/proc/{pid}/environ 0; read $ @ 100
processes: visible | look into a process of this user | open '/proc/{pid}/cmdline 0; read $ @ 100
processes: fork | fork | fork
processes: exec | execute a program | execv '/bin/echo &
processes: exec of an own file | execute a copy of a program by its descriptor | COPY
signals | ask whether a process of this user can be signalled | kill PID 0
signals: the parent | the same of the parent | getppid; kill $ 0
mounts | cover a folder of this user by an empty one | mount 'none '{folder}/covered 'tmpfs 0 0
namespaces | make a user and a mount namespace | unshare 268566528
devices | open the memory of the machine | open '/dev/mem 0
memory files | memfd_create | memfd_create 'x 0
ptrace | ask to be traced by the parent | ptrace 0 0 0 0
"""
"""Name, attempt, and calls: a function, then numbers or texts (after an apostrophe; passed by address). ``$`` is the
last result, ``@`` free memory, ``*`` its first number, ``&`` the arguments of a program that prints REACHED.
"""
_COPY = "open 'own 0; dup2 $ 20; open 'copy CREATE 448; dup2 $ 21; sendfile $ 20 0 1073741824; "
_COPY += "syscall CLOSE_RANGE 3 21 0; open 'copy 0; syscall EXECVEAT $ ' & & EMPTY_PATH"
ATTEMPTS = tuple(tuple(line.replace("COPY", _COPY).split(" | ")) for line in _ATTEMPTS.strip().splitlines())
_KNOWN = {"CREATE": os.O_WRONLY | os.O_CREAT, "O_RDWR": os.O_RDWR, "EMPTY_PATH": AT_EMPTY_PATH}
_KNOWN |= {name: getattr(socket, name) for name in ("AF_INET", "AF_UNIX", "SOCK_STREAM", "SOCK_DGRAM")}
_KNOWN |= {name: NUMBER.get(name.lower(), 0) for name in ("EXECVEAT", "CLOSE_RANGE")}


@dataclass(frozen=True, slots=True)
class Host:
    """Targets of the attempts on the host."""

    port: int
    folder: str
    pid: int

    def lines(self, calls: str) -> bytes:
        """Return calls as lines of standard input, with texts in hexadecimal."""
        return "".join(f"{' '.join(map(self._word, call.split()))}\n" for call in calls.split("; ")).encode()

    def _word(self, word: str) -> str:
        if word == "INET":
            address = struct.pack("=H", socket.AF_INET) + struct.pack(">H", self.port) + bytes((127, 0, 0, 1))
            return f":{address.hex()}{'00' * 8}"
        if word == "UNIX":
            return ":" + struct.pack("=H108s", socket.AF_UNIX, f"{self.folder}/socket".encode()).hex()
        if word[0] == "'":
            text = word[1:].format(folder=self.folder, pid=self.pid, library=os.__file__)
            return f":{text.encode().hex()}00"
        return str({**_KNOWN, "PID": self.pid}.get(word, word))


PYTHON = """
import ctypes, os, sys
libc, result = ctypes.CDLL(None, use_errno=True), 0
space, words = ctypes.create_string_buffer(1 << 16), (ctypes.c_char_p * 3)(b"x", b"REACHED", None)
for line in sys.stdin:
    name, *given = line.split()
    known = {"$": result, "@": ctypes.addressof(space), "*": ctypes.c_int.from_buffer(space).value}
    known["&"] = ctypes.addressof(words)
    texts = {word: ctypes.create_string_buffer(bytes.fromhex(word[1:])) for word in given if word[0] == ":"}
    known |= {word: ctypes.addressof(text) for word, text in texts.items()}
    call = libc[name]
    call.restype = ctypes.c_long
    result = call(*(ctypes.c_long(known[word] if word in known else int(word)) for word in given))
    if ctypes.c_int(result).value == -1:
        print("refused", name + ":", os.strerror(ctypes.get_errno()))
        break
else:
    print("REACHED", result)
"""
"""Makes the calls of its input."""

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
"""Prints a test's initial state, then changes all modes and times that it can."""

LIMITED = (
    (
        "limit: memory",
        Ending.MEMORY_LIMIT,
        "take 1 GiB where 100 MiB are allowed",
        "b = b'x' * (1 << 30)",
        "memset(malloc(1 << 30), 1, 1 << 30)",
    ),
    (
        "limit: CPU time",
        Ending.CPU_LIMIT,
        "loop where 1 s is allowed",
        "while True: pass",
        "for (volatile int i = 0;; i = 0)",
    ),
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
        "print forever where 1 MiB is allowed",
        "while True: print('x' * 9999)",
        "for (;;) puts(string(9999, 'x').c_str())",
    ),
)
"""Name, required ending, attempt, Python program, C++ act."""

_CPP = r"""
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <iostream>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
using namespace std;
extern char **environ;
static char space[1 << 16];
static const char *reached[] = {"x", "REACHED", 0};
static const char *text(const string &word) {
    string *made = new string;
    for (size_t at = 1; at < word.size(); at += 2) made->push_back((char)stoi(word.substr(at, 2), 0, 16));
    return made->data();
}
static void calls() {
    string line, name, word;
    long result = 0;
    while (getline(cin, line)) {
        istringstream words(line);
        long with[6] = {};
        words >> name;
        for (int at = 0; at < 6 && words >> word; at++)
            with[at] = word == "$" ? result : word == "@" ? (long)space : word == "*" ? *(int *)space
                : word == "&" ? (long)reached : word[0] == ':' ? (long)text(word) : atol(word.c_str());
        auto call = (long (*)(long, long, long, long, long, long))dlsym(RTLD_DEFAULT, name.c_str());
        result = call(with[0], with[1], with[2], with[3], with[4], with[5]);
        if ((int)result == -1) return (void)printf("refused %s: %s\n", name.c_str(), strerror(errno));
    }
    printf("REACHED %ld\n", result);
}
/* What a test finds, then all that it can shut or date of its own: its folder, a file, this program, its streams. */
static void shut() {
    struct stat found;
    stat(".", &found);
    printf("%o %ld", found.st_mode, (long)open("f", O_WRONLY | O_CREAT | O_EXCL, 0600));
    for (int mode : {07777, 0}) {
        for (const char *path : {"f", ".", "/proc/self/exe"}) chmod(path, mode), utimensat(AT_FDCWD, path, nullptr, 0);
        for (int stream : {0, 1, 2}) fchmod(stream, mode), futimens(stream, nullptr);
    }
}
static void names() {
    for (char **name = environ; *name; name++) printf("%.*s ", (int)strcspn(*name, "="), *name);
}
static void left() {
    DIR *here = opendir(".");
    for (dirent *entry; (entry = readdir(here));) if (entry->d_name[0] != '.') printf("%s ", entry->d_name);
    open("left", O_WRONLY | O_CREAT, 0600);
}
int main(int count, char **words) {
    string act = words[count - 1];
    if (act == "REACHED") puts(words[count - 1]);
{cases}
}
"""


def cpp_program() -> str:
    """Return the C++ program, whose argument is the act."""
    acts = {name: act for name, _, _, _, act in LIMITED}
    acts |= {name: f"{name}()" for name in ("calls", "names", "left", "shut")}
    return _CPP.replace("{cases}", "\n".join(f'    if (act == "{name}") {act};' for name, act in acts.items()))
