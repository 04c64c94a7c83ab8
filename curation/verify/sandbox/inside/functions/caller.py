"""Runs a test program's assertions on results from the submission's box.

Calls of the judged function are answered from a table of its results. A call that the table lacks is noted and returns
an unknown, whose use abandons the statement; the next statements still run, so one pass gathers most calls. The judge
obtains them and starts this again until a pass meets no unknown. Only such a pass judges, or a failure before any
unknown, or an unreadable result.

Names that neither the test program nor its setup defines are functions of the submission, like ``entry``.

Standard input is ``{"program", "setup", "entry", "results": {call: [line, …]}}``; one line goes out: ``{"passed"}``,
``{"failed"}`` or ``{"need": [[name, args, kwargs], …]}``.
"""

from __future__ import annotations

import ast
import builtins
import collections
import importlib
import json
import os
import random
import sys
import traceback
import types
from typing import Any

from .values import NotData, TooDeep, decode, encode

_SIMPLE = (ast.Assert, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)


class _Unknown(BaseException):
    """An unknown was used."""


class _Forged(BaseException):
    """The submission wrote into the channel of its results."""


def _abandon(*_: object, **__: object) -> Any:
    raise _Unknown


_USES = """abs add and bool bytes call ceil complex contains delitem divmod enter eq exit float floor floordiv format
ge getitem gt hash index int invert iter le len length_hint lshift lt matmul mod mul ne neg next or pos pow radd
rand rdivmod repr reversed rfloordiv rlshift rmatmul rmod rmul ror round rpow rrshift rshift rsub rtruediv rxor
setitem str sub truediv trunc xor""".split()
_Something = type("_Something", (), {f"__{use}__": _abandon for use in _USES} | {"__getattr__": _abandon})
_SOMETHING = _Something()


class _Calls:
    """Answers calls from the table of results, and notes those that it lacks."""

    def __init__(self, results: dict[str, list[Any]]) -> None:
        self.results = results
        self.met: collections.Counter[str] = collections.Counter()
        self.need: list[list[str]] = []
        self.unknown = self.forged = False

    def __call__(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call = [name, encode(list(args)), encode(kwargs)]
        key = json.dumps(call)
        nth = self.met[key]
        self.met[key] += 1
        if nth >= len(self.results.get(key, ())):
            self.unknown = True
            self.need.append(call)
            return _SOMETHING
        line = self.results[key][nth]
        value = None
        try:
            if "args" in line:
                for argument, changed in zip(args, decode(line["args"]), strict=True):
                    _overwrite(argument, changed)
            if "error" not in line:
                value = decode(line["value"])
        except (NotData, ValueError, TypeError) as error:
            self.forged = True
            raise _Forged(f"{name} returned what cannot be read: {error}") from error
        if "error" in line:
            kind, text = line["error"]
            raise getattr(builtins, kind)(text)
        return value


def _overwrite(argument: Any, changed: Any) -> None:
    """Give an argument its content after the call."""
    if isinstance(argument, (list, bytearray)):
        argument[:] = changed
    elif isinstance(argument, (dict, set, collections.deque)):
        argument.clear()
        (argument.extend if isinstance(argument, collections.deque) else argument.update)(changed)


class _Patient(ast.NodeTransformer):
    """Lets each simple statement be abandoned; the names that it binds become unknown."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        node = super().generic_visit(node)
        if not isinstance(node, _SIMPLE):
            return node
        bound = [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
        text = "try:\n pass\nexcept BaseException as __why:\n __judge.abandoned(__why)\n" + "".join(
            f" {name} = __judge.something\n" for name in bound
        )
        wrapped = ast.parse(text).body[0]
        if isinstance(wrapped, ast.Try):
            wrapped.body = [node]
        return ast.copy_location(wrapped, node)


class _Judge:
    something = _SOMETHING

    def __init__(self, calls: _Calls) -> None:
        self.calls = calls

    def abandoned(self, why: BaseException) -> None:
        """Raise an error again unless an unknown may be its cause."""
        if not self.calls.unknown:
            raise why


def _proxy(calls: _Calls, name: str) -> Any:
    def proxy(*args: Any, **kwargs: Any) -> Any:
        return calls(name, args, kwargs)

    proxy.__name__ = proxy.__qualname__ = name.rpartition(".")[2]
    return proxy


class _Object:
    """Replaces an object of the submission's class."""

    def __init__(self, calls: _Calls, name: str) -> None:
        self._of = calls, name

    def __call__(self) -> _Object:
        return self

    def __getattr__(self, method: str) -> Any:
        calls, name = self._of
        return _proxy(calls, f"{name}.{method}")


def main_caller() -> None:
    """Answer the request on standard input."""
    channel = os.dup(1)
    os.dup2(2, 1)
    with os.fdopen(os.dup(0), "rb") as stdin:
        request = json.loads(stdin.read())
    sys.setrecursionlimit(10_000)
    calls = _Calls(request["results"])
    line: dict[str, object]
    try:
        _run(request, calls)
        line = {"passed": True}
    except AssertionError as error:
        line = {"failed": f"an assertion failed: {_where(error)}"}
    except _Unknown:
        line = {}
    except _Forged as error:
        line = {"failed": str(error)}
    except TooDeep as error:
        word = "failed" if request["results"] else "broken"
        line = {word: f"the test program passes {error}, which cannot go into another box"}
    except NotData as error:
        line = {"broken": f"the test program passes {error}, which cannot go into another box"}
    except Exception as error:  # noqa: BLE001  what the test program raises is its verdict
        line = {"failed": f"{type(error).__name__}: {str(error)[:200]} ({_where(error)})"}
    if calls.unknown and "broken" not in line and not calls.forged:
        line = {"need": calls.need}
    os.write(channel, json.dumps(line).encode() + b"\n")
    os._exit(0)


def _run(request: dict[str, Any], calls: _Calls) -> None:
    module = types.ModuleType("tests")
    space = module.__dict__
    sys.modules["tests"] = module
    exec(compile(request["setup"], "setup.py", "exec"), space)
    tree = ast.parse(request["program"], "tests.py")
    for part in ast.walk(tree):  # assertions use what solutions import
        if isinstance(part, ast.Name) and part.id in sys.stdlib_module_names and part.id not in space:
            space[part.id] = importlib.import_module(part.id)
    entry = request["entry"]
    owner, dot, _ = entry.rpartition(".")
    proxy = _proxy(calls, entry)
    space[owner if dot else entry] = _Object(calls, owner) if dot else proxy
    for name in _free_names(tree) - space.keys() - vars(builtins).keys():
        space[name] = _proxy(calls, name)
    space["__judge"] = _Judge(calls)
    patient = ast.fix_missing_locations(_Patient().visit(tree))
    random.seed(0)
    exec(compile(patient, "tests.py", "exec"), space)
    if space.get("check", proxy) is not proxy and not _calls_check(tree):
        space["check"](proxy)


def _free_names(tree: ast.Module) -> set[str]:
    """Return names that a test program uses but does not bind: functions of the submission."""
    used, bound = set[str](), set[str]()
    for part in ast.walk(tree):
        match part:
            case ast.Name(id=name, ctx=ast.Load()):
                used.add(name)
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.alias(name=name, asname=other):
                bound.add(other or name.partition(".")[0])
            case ast.ExceptHandler(name=str(name)):
                bound.add(name)
    return used - bound


def _calls_check(tree: ast.Module) -> bool:
    """Return whether the test program calls its ``check`` itself (as in HumanEval-X, not in HumanEval)."""
    body = (statement.body[0] if isinstance(statement, ast.Try) else statement for statement in tree.body)
    calls = (part.value for part in body if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call))
    return any(isinstance(call.func, ast.Name) and call.func.id == "check" for call in calls)


def _where(error: BaseException) -> str:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "tests.py"]
    return f"line {lines[-1]} of the tests" if lines else "outside the tests"
