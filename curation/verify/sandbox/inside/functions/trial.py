"""Several programs on the same examples, in the box: what each returns or prints. Its text is handed to the sandbox.

One JSON object comes in: ``examples``, lists of arguments, or a text for standard input; and ``programs``: a source,
the name of a function (``Class.method`` too; empty for a program that reads and prints), and which examples it is run
on. One JSON line goes out per program as it is done: for each of its examples ``[value]`` as plain data, or null where
there is none.

Invariant: standard library alone, nothing of the project. A program that hangs, fails or says nothing costs only its
own values. What is returned proves nothing about a program that wants to deceive: it is no verdict.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import signal
import sys
from typing import Any

CALL_S = 0.3
"""Seconds of CPU time of one call."""
MOST_LETTERS = 4000
"""Letters of a value, as text, that is handed out."""


class OutOfTimeError(BaseException):
    """Raised in a call that takes too long."""


def plain(value: Any, depth: int = 0) -> Any:
    """Return a value as plain data: tuples as lists, sets sorted, keys as text."""
    if depth > 20:
        raise ValueError("too deep")
    if isinstance(value, (list, tuple)):
        return [plain(part, depth + 1) for part in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(part, depth + 1) for part in value), key=repr)
    if isinstance(value, dict):
        return {str(key): plain(part, depth + 1) for key, part in value.items()}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else repr(value)
    raise ValueError("no plain data")


def result(space: dict[str, Any], code: Any, name: str, example: Any) -> list[Any] | None:
    """Return what a program makes of an example: of arguments by its function, of a text by reading it."""
    if isinstance(example, str) == bool(name):
        return None
    signal.setitimer(signal.ITIMER_VIRTUAL, CALL_S)
    try:
        if isinstance(example, str):
            written = io.StringIO()
            sys.stdin = io.TextIOWrapper(io.BytesIO(example.encode()))
            with contextlib.redirect_stdout(written), contextlib.suppress(SystemExit):
                exec(code, {"__name__": "__main__"})
            value: Any = written.getvalue()
        else:
            head, _, method = name.partition(".")
            function = getattr(space[head](), method) if method else space[head]
            with contextlib.redirect_stdout(io.StringIO()):
                value = plain(function(*copy.deepcopy(example)))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return [value] if len(json.dumps(value)) <= MOST_LETTERS else None


def results(source: str, name: str, examples: list[Any]) -> list[list[Any] | None]:
    """Return what a program makes of each example."""
    values: list[list[Any] | None] = [None] * len(examples)
    space: dict[str, Any] = {"__name__": "program"}
    try:
        code = compile(source, "program", "exec")
        if name:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(code, space)
    except BaseException:  # noqa: BLE001  whatever a foreign program raises
        return values
    for at, example in enumerate(examples):
        with contextlib.suppress(BaseException):
            values[at] = result(space, code, name, example)
    return values


def stop(*_: Any) -> None:
    """End a call that takes too long."""
    raise OutOfTimeError


def main_trial() -> None:
    """Answer the one request."""
    signal.signal(signal.SIGVTALRM, stop)
    request = json.load(sys.stdin)
    for source, name, which in request["programs"]:
        answers = results(source, name, [request["examples"][at] for at in which])
        print(json.dumps(answers), flush=True)


if __name__ == "__main__":
    main_trial()
