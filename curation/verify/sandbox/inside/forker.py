"""A process that has one program ready and forks its tests, each a child of the supervisor (CLONE_PARENT).

Invariants: it does next to nothing else, for whatever a process writes to while a fork shares its pages is copied; it
holds no input and no output, only the descriptors it hands to the child it makes; it ends when the supervisor does.
"""

from __future__ import annotations

import _socket
import os
import resource
from collections.abc import Callable

from .confinement import NOTHING, NUMBER, Confinement, GetRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    Run = Callable[[GetRequest | None], NoReturn]
    """Becomes the program; called with the function that returns its request, if that has arguments."""
    Prepare = Callable[[], Run]

SEPARATOR = "\0"


def request_of(arguments: list[str]) -> bytes:
    """Return arguments as the text of a request to `serve`."""
    return SEPARATOR.join((NOTHING.decode(), *arguments)).encode()


def arguments_of(get_request: GetRequest) -> list[str]:
    """Return the arguments in a request that `request_of` made."""
    return get_request().decode().split(SEPARATOR)[1:]


def serve(link: _socket.socket, prepare: Prepare, confinement: Confinement) -> NoReturn:
    """Make the program ready, send its peak memory (KiB), then fork per request and answer with the process number."""
    try:
        run = prepare()
        link.send(NUMBER.pack(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
        get_request = confinement.serve(link, run)
        if get_request is not None:
            run(get_request)
        os._exit(0)
    finally:
        os._exit(71)
