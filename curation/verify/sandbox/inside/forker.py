"""A process that has one program ready and forks its tests, each a child of the supervisor (CLONE_PARENT).

Invariants: it does next to nothing else, for whatever a process writes to while a fork shares its pages is copied; it
holds no input and no output, only the descriptors it hands to the child it makes; it ends when the supervisor does.
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import struct
import sys
from collections.abc import Callable
from typing import NoReturn

from . import child, kernel
from .filter import Template

FAILED_TO_START = 70
Start = Callable[[list[str]], object]
"""Becomes the program, with these arguments."""
Prepare = Callable[[], Start]
SEPARATOR = "\0"
_STANDARD = struct.Struct("3i")
_REQUEST = 1 << 16


def request_of(arguments: list[str]) -> bytes:
    """Arguments as `serve` takes them; never empty, which would mean the end."""
    return SEPARATOR.join(("solution", *arguments)).encode()


def failed_to_start() -> NoReturn:
    """Say why no foreign code ran, to the report pipe; when foreign code runs it is closed."""
    with contextlib.suppress(OSError):
        os.write(child.REPORT, repr(sys.exc_info()[1]).encode()[:4096])
    os._exit(FAILED_TO_START)


def serve(
    link: socket.socket,
    prepare: Prepare,
    limits: list[child.Limit],
    filtering: Template | None,
    ruleset: int,
    held: tuple[int, ...] = (),
) -> NoReturn:
    """Make the program ready, say what that took (KiB), then a fork per request; answers with its process number."""
    try:
        start = prepare()
        link.send(b"%d" % resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        beside_bytes = socket.CMSG_SPACE(_STANDARD.size)
        while True:
            request, beside, _, _ = link.recvmsg(_REQUEST, beside_bytes, socket.MSG_CMSG_CLOEXEC)
            if not request:
                os._exit(0)
            standard = _STANDARD.unpack(beside[0][2])
            pid = kernel.fork_sibling()
            if pid == 0:
                try:
                    child.confine((*standard, *held), limits, filtering, ruleset)
                    start(request.decode().split(SEPARATOR)[1:])
                finally:
                    failed_to_start()
            link.send(b"%d" % pid)
            for descriptor in standard:
                os.close(descriptor)
    finally:
        os._exit(71)
