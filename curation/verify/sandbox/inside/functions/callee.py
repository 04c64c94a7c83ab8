"""Loads a submission in its box, makes the requested calls, and returns the results.

The box has no secret and no expected value: a submission could forge only its own return value.

Standard input is ``{"code", "setup", "entry", "calls": [[name, args, kwargs], …]}``. The first line out states whether
the code could be loaded; then there is one per call as it returns: ``{"value"}`` or ``{"error"}``, with ``{"args"}`` if
the call changed its arguments. What the submission prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import random
import sys
import types
from collections.abc import Callable
from typing import Any

from .values import NotData, decode, encode


def main_callee() -> None:
    """Answer the request on standard input and end the process, so that nothing of the submission runs afterwards."""
    leave = os._exit
    write = os.write
    channel = os.dup(1)
    os.dup2(2, 1)
    with os.fdopen(os.dup(0), "rb") as stdin:
        request = json.loads(stdin.read())
    sys.setrecursionlimit(10_000)
    random.seed(0)

    def send(line: dict[str, object]) -> None:
        data = json.dumps(line).encode() + b"\n"
        while data:
            data = data[write(channel, data) :]

    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    for name, text in (("setup", request["setup"]), ("solution", request["code"])):
        try:
            code = compile(text, f"{name}.py", "exec")
        except (SyntaxError, ValueError) as error:
            send({"syntax": f"{type(error).__name__}: {error}"})
            leave(0)
            return
        exec(code, module.__dict__)
    send({"loaded": True})
    for name, args, kwargs in request["calls"]:
        send(_answer(module, name, args, kwargs))
    leave(0)


def _answer(module: types.ModuleType, name: str, args: str, kwargs: str) -> dict[str, object]:
    positional = decode(args)
    before = encode(positional)
    keywords = decode(kwargs)
    try:
        value = _function(module, name)(*positional, **keywords)
        answer: dict[str, object] = {"value": encode(value)}
    except NotData as error:
        return {"error": ["TypeError", f"it returned {error}"]}
    except Exception as error:  # noqa: BLE001  what the judged function raises is its result
        return {"error": [_builtin_name(type(error)), str(error)[:500]]}
    try:
        after = encode(positional)
    except NotData:
        return answer
    return answer if after == before else {**answer, "args": after}


def _function(module: types.ModuleType, name: str) -> Callable[..., Any]:
    owner, dot, method = name.rpartition(".")
    if dot:
        bound: Callable[..., Any] = getattr(getattr(module, owner)(), method)
        return bound
    called: Callable[..., Any] = getattr(module, name)
    return called


def _builtin_name(kind: type) -> str:
    return next((base.__name__ for base in kind.__mro__ if base.__module__ == "builtins"), "Exception")
