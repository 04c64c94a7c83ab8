"""Judges functions by calls, or by test programs that assert.

The submission runs in one box and returns plain data, so nothing in its process reaches the verdict; a test program
runs on that data in a second box. C++ functions are linked with a separately compiled test program, which passes if it
writes a secret of this judge process; a submission could find it in its memory, but stays in the box.

Invariants: comparison hashes nothing and calls no method of a value; unreadable results are the submission's crash.
"""

from __future__ import annotations

import base64
import builtins
import contextlib
import hashlib
import json
import math
import re
import secrets
from collections.abc import Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any

from curation.verify.programs.problem import (
    CaseRun,
    CodeLang,
    CodeProblem,
    CodeVerdict,
    FunctionCall,
    FunctionTests,
    Submission,
    Unready,
)
from curation.verify.programs.running import failure_of
from curation.verify.programs.toolchain import CPP_FLAGS
from curation.verify.programs.tools import Program, Runner, ready, wants_numpy
from curation.verify.sandbox import Limits, RunResult
from curation.verify.sandbox.inside import functions
from curation.verify.sandbox.inside.functions.values import encode

_ROUNDS = 100
_CALLS = 20_000
_RESULT_BYTES = 16 << 20
_ERRORS = frozenset(
    name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)
)
_SECRET = secrets.token_bytes(32)
_MAIN = re.compile(r"\bint\s+main\s*\(\s*(?:void)?\s*\)")
_BOOST_ANY = b"""#pragma once
#include <any>
namespace boost { using std::any; using std::any_cast; using bad_any_cast = std::bad_any_cast; }
"""
"""Replaces the only Boost header of HumanEval-X."""
_Call = list[str]
"""``[name, encoded arguments, encoded keyword arguments]``"""


def run_function(
    runner: Runner,
    problem: CodeProblem,
    submission: Submission,
    indices: Sequence[int],
    *,
    every: bool = False,
) -> list[CaseRun] | Unready:
    """Run the function tests, one run per call or test program."""
    tests = problem.function
    assert tests is not None
    if submission.lang is CodeLang.CPP:
        if tests.program is None:
            return Unready(CodeVerdict.BROKEN, "calls as data are judged in Python only; C++ needs a test program")
        return _run_linked(runner, problem, submission)
    if tests.program is not None:
        return [_run_assertions(runner, problem, tests, submission)]
    return _run_calls(runner, problem, tests, submission, indices, every)


@lru_cache
def _boxed(module: str) -> str:
    """Return a box's program: `values`, ``module``, a call of its main."""
    parts = []
    for name in ("values", module):
        text = Path(functions.__file__).with_name(f"{name}.py").read_text("utf-8")
        parts += [line for line in text.splitlines() if not line.startswith(("from __future__", "from .values"))]
    return "\n".join(("from __future__ import annotations", *parts, f"main_{module}()", ""))


def _limits(problem: CodeProblem) -> Limits:
    return Limits(cpu_s=problem.cpu_s, memory_mb=problem.memory_mb, output_bytes=_RESULT_BYTES)


def _request(tests: FunctionTests, submission: Submission, calls: Sequence[_Call]) -> bytes:
    return json.dumps({"code": submission.code, "setup": tests.setup, "calls": calls}).encode()


def _run_calls(
    runner: Runner,
    problem: CodeProblem,
    tests: FunctionTests,
    submission: Submission,
    indices: Sequence[int],
    every: bool,
) -> list[CaseRun]:
    runs: list[CaseRun] = []
    stdins = [_request(tests, submission, [_call(tests.entry, tests.calls[index])]) for index in indices]
    with closing(runner.run(_callee(submission), stdins, _limits(problem), processes=problem.processes)) as results:
        for index, ran in zip(indices, results, strict=False):
            verdict, how = _judge_call(ran, tests.calls[index], tests.tolerance)
            runs.append(CaseRun(index, verdict, ran.cpu_s, ran.wall_s, ran.memory_mb, how))
            if verdict is not CodeVerdict.AC and not every:
                break
    return runs


def _callee(submission: Submission) -> Program:
    code = submission.code
    return Program(CodeLang.PYTHON, _boxed("callee"), numpy=wants_numpy(code))


def _call(entry: str, call: FunctionCall) -> _Call:
    return [entry, encode(list(call.args)), encode(dict(call.kwargs))]


def _judge_call(ran: RunResult, call: FunctionCall, tolerance: float | None) -> tuple[CodeVerdict, str]:
    lines = _lines(ran, 1)
    if isinstance(lines, tuple):
        return lines
    (line,) = lines
    if "error" in line:
        return CodeVerdict.RTE, f"{line['error'][0]}: {line['error'][1][:200]}"
    expected = json.loads(encode(call.expected))
    try:
        right = _same(expected, json.loads(line["value"]), tolerance)
    except (ValueError, RecursionError, ArithmeticError, TypeError):
        right = False
    return (CodeVerdict.AC, "") if right else (CodeVerdict.WA, f"it returned {line['value'][:200]}")


def _lines(ran: RunResult, count: int) -> list[dict[str, Any]] | tuple[CodeVerdict, str]:
    """Return ``count`` checked lines of the callee, where the submission can write anything, or a verdict."""
    failure = failure_of(ran)
    if failure is not None:
        return failure
    try:
        lines = [json.loads(line) for line in ran.stdout.splitlines()]
    except (ValueError, RecursionError):
        return CodeVerdict.RTE, "it wrote into the channel of its results"
    if lines and isinstance(lines[0], dict) and "syntax" in lines[0]:
        return CodeVerdict.CE, _readable(str(lines[0]["syntax"])[:300])
    if len(lines) != count + 1:
        return CodeVerdict.RTE, "it ended the process before it had returned"
    safe_lines = [_safe(line) for line in lines[1:]]
    if any(line is None for line in safe_lines):
        return CodeVerdict.RTE, "it wrote into the channel of its results"
    return [line for line in safe_lines if line is not None]


def _safe(line: object) -> dict[str, Any] | None:
    if not isinstance(line, dict):
        return None
    args = {"args": _readable(line["args"])} if isinstance(line.get("args"), str) else {}
    match line:
        case {"value": str(value)}:
            return {"value": _readable(value), **args}
        case {"error": [str(kind), str(text)]}:
            return {"error": [kind if kind in _ERRORS else "Exception", _readable(text)], **args}
    return None


def _readable(text: str) -> str:
    """Return text without lone surrogates."""
    return text.encode("utf-8", "replace").decode()


def _same(expected: Any, actual: Any, tolerance: float | None) -> bool:
    """Return whether encoded values are equal in Python, or as lists."""
    expected_pair = _kind(expected)
    actual_pair = _kind(_in_order(actual, len(expected_pair[1])) if expected_pair[0] == "list" else actual)
    if expected_pair[0] != actual_pair[0]:
        return False
    kind, expected_data, actual_data = expected_pair[0], expected_pair[1], actual_pair[1]
    if kind == "number":
        if isinstance(expected_data, (int, float)) and isinstance(actual_data, (int, float)):
            near = tolerance is not None and math.isclose(
                expected_data, actual_data, rel_tol=tolerance, abs_tol=tolerance
            )
            return (
                expected_data == actual_data or near or (expected_data != expected_data and actual_data != actual_data)
            )
        return bool(expected_data == actual_data)
    if kind in {"plain", "other"}:
        return bool(expected_data == actual_data)
    if (
        not isinstance(expected_data, list)
        or not isinstance(actual_data, list)
        or len(expected_data) != len(actual_data)
    ):
        return False
    if kind == "set":
        expected_data, actual_data = sorted(expected_data, key=json.dumps), sorted(actual_data, key=json.dumps)
    elif kind == "dict":
        expected_data, actual_data = sorted(expected_data, key=_key), sorted(actual_data, key=_key)
    return all(_same(left, right, tolerance) for left, right in zip(expected_data, actual_data, strict=True))


def _in_order(value: Any, count: int) -> Any:
    """Return an ordered non-list as a list, a range up to ``count + 1`` items."""
    match value:
        case {"t": "range", "v": [int(start), int(stop), int(step)]} if step:
            return list(range(start, stop, step)[: count + 1])
        case {"t": "array" | "memoryview", "v": [str(), [*items]]} | {"t": "keys" | "items", "v": [*items]}:
            return items
        case {"t": "bytes" | "bytearray", "v": str(text)}:
            with contextlib.suppress(ValueError):  # a submission may return anything
                return list(base64.b64decode(text))
    return value


def _key(pair: Any) -> str:
    return json.dumps(pair[:1] if isinstance(pair, list) else pair)


_FAMILY = {
    **dict.fromkeys(("list", "tuple", "deque", "iterator", "values"), "list"),
    **dict.fromkeys(("set", "frozenset", "keys"), "set"),
    **dict.fromkeys(("dict", "ordered", "counter"), "dict"),
}


def _kind(value: Any) -> tuple[str, Any]:
    if isinstance(value, list):
        return "list", value
    if isinstance(value, dict):
        name, inner = value.get("t"), value.get("v")
        if name == "int":
            return "number", str(inner)
        return _FAMILY.get(str(name), "other"), inner if str(name) in _FAMILY else value
    return ("number", value) if isinstance(value, (int, float)) else ("plain", value)


def _run_assertions(runner: Runner, problem: CodeProblem, tests: FunctionTests, submission: Submission) -> CaseRun:
    results: dict[str, list[dict[str, Any]]] = {}
    cpu = wall = memory = 0.0
    need = _first_need(runner, problem, tests)
    count = 0
    for _ in range(_ROUNDS):
        if isinstance(need, tuple):
            return CaseRun(0, need[0], cpu, wall, memory, need[1])
        count += len(need)
        if count > _CALLS:
            break
        request, limits = _request(tests, submission, need), _limits(problem)
        (ran,) = runner.run(_callee(submission), [request], limits, processes=problem.processes)
        cpu, wall, memory = cpu + ran.cpu_s, wall + ran.wall_s, max(memory, ran.memory_mb)
        lines = _lines(ran, len(need))
        if isinstance(lines, tuple):
            return CaseRun(0, lines[0], cpu, wall, memory, lines[1])
        if cpu > problem.cpu_s:
            return CaseRun(0, CodeVerdict.TLE, cpu, wall, memory, "the calls together")
        for call, line in zip(need, lines, strict=True):
            results.setdefault(json.dumps(call), []).append(line)
        need = _ask(runner, problem, tests, results)
    why = f"{count} calls in {_ROUNDS} rounds at most, and the test program needs more"
    return CaseRun(0, CodeVerdict.TLE if results else CodeVerdict.BROKEN, cpu, wall, memory, why)


def _first_need(runner: Runner, problem: CodeProblem, tests: FunctionTests) -> list[_Call] | tuple[CodeVerdict, str]:
    key = json.dumps([tests.entry, tests.program, tests.setup, problem.cpu_s, problem.memory_mb])
    if key not in runner.gathered:
        calls = _ask(runner, problem, tests, {})
        if isinstance(calls, tuple):
            return calls
        runner.gathered[key] = calls
    return runner.gathered[key]


def _ask(
    runner: Runner, problem: CodeProblem, tests: FunctionTests, results: dict[str, list[dict[str, Any]]]
) -> list[_Call] | tuple[CodeVerdict, str]:
    request = {"program": tests.program, "setup": tests.setup, "entry": tests.entry, "results": results}
    program = Program(CodeLang.PYTHON, _boxed("caller"), numpy=wants_numpy(f"{tests.program}{tests.setup}"))
    limits = Limits(cpu_s=2 * problem.cpu_s + 2, memory_mb=2 * problem.memory_mb + 200, output_bytes=_RESULT_BYTES)
    (ran,) = runner.run(program, [json.dumps(request).encode()], limits)
    try:
        line = json.loads(ran.stdout)
    except ValueError:
        line = {}
    match line:
        case {"passed": True}:
            return CodeVerdict.AC, ""
        case {"failed": str(how)}:
            return CodeVerdict.WA, _readable(how)
        case {"need": [*calls]} if calls:
            return [[str(part) for part in call] for call in calls]
        case {"broken": str(how)}:
            return CodeVerdict.BROKEN, how
    failure = failure_of(ran)
    verdict, how = failure if failure is not None else (CodeVerdict.RTE, "it printed nothing")
    how = f"the test program failed: {how} {ran.stderr[-300:].decode('utf-8', 'replace')}".strip()
    return (verdict if results else CodeVerdict.BROKEN), how


def _run_linked(runner: Runner, problem: CodeProblem, submission: Submission) -> list[CaseRun] | Unready:
    """Link and run the test program; BROKEN if it does not end with ``main``."""
    tests = problem.function
    assert tests is not None
    assert tests.program is not None
    secret = hashlib.blake2b(submission.code.encode("utf-8", "surrogateescape"), key=_SECRET, digest_size=16).digest()
    unit = _test_unit(_prototype(tests.setup), tests.program, secret)
    if unit is None:
        return Unready(CodeVerdict.BROKEN, "the C++ test program does not end with its main function")
    sources = {
        "tests.cpp": unit.encode(),
        "solution.cpp": submission.code.encode("utf-8", "surrogateescape"),
        "boost/any.hpp": _BOOST_ANY,
    }
    flags = (*CPP_FLAGS, "-idirafter", ".", "-Wl,-z,muldefs")
    libraries = ("-lcrypto",) if "openssl/" in submission.code else ()
    program = ready(runner.cpp(sources, ("tests.cpp", "solution.cpp", *libraries), flags), submission.code)
    if not isinstance(program, Program):
        return program
    limits = Limits(cpu_s=problem.cpu_s, memory_mb=problem.memory_mb, output_bytes=16 << 20)
    (ran,) = runner.run(program, [b""], limits, processes=problem.processes)
    outcome = failure_of(ran)
    if outcome is None:
        passed = ran.stdout.endswith(secret.hex().encode())
        outcome = (CodeVerdict.AC, "") if passed else (CodeVerdict.RTE, "it ended the process before the tests ended")
    elif b"Assertion" in ran.stderr and b"tests.cpp" in ran.stderr:
        outcome = CodeVerdict.WA, ran.stderr[:300].decode("utf-8", "replace").strip()
    return [CaseRun(0, outcome[0], ran.cpu_s, ran.wall_s, ran.memory_mb, outcome[1])]


def _prototype(declaration: str) -> str:
    r"""Return a C++ prompt with its open last function as a declaration.

    Example: ``_prototype("#include<string>\nint f(int x){\n")`` is ``"#include<string>\nint f(int x);\n"``
    """
    depth, start = 0, None
    for position, letter in enumerate(declaration):
        if letter == "{":
            start = position if depth == 0 else start
            depth += 1
        elif letter == "}":
            depth -= 1
    return declaration if depth <= 0 or start is None else f"{declaration[:start].rstrip()};\n"


def _test_unit(declaration: str, program: str, secret: bytes) -> str | None:
    """Return tests whose ``main`` writes the secret if they pass."""
    text = program.rstrip()
    if not _MAIN.search(text) or not text.endswith("}"):
        return None
    text = _MAIN.sub("static int goldilocks_tests()", text[:-1], count=1) + "\nreturn 0;\n}\n"
    mask = hashlib.blake2b(secret, digest_size=16).digest()
    hidden = ",".join(str(byte ^ mask_byte) for byte, mask_byte in zip(secret, mask, strict=True))
    return f"""{declaration}
{text}
#include <unistd.h>
#include <cstdio>
int main() {{
    int code = goldilocks_tests();
    fflush(stdout);
    if (code == 0) {{
        static const volatile unsigned char hidden[] = {{{hidden}}};
        static const volatile unsigned char mask[] = {{{",".join(map(str, mask))}}};
        char word[33];
        for (int i = 0; i < 16; i++) snprintf(word + 2 * i, 3, "%02x", hidden[i] ^ mask[i]);
        if (write(1, word, 32) != 32) code = 1;
    }}
    _exit(code);
}}
"""
