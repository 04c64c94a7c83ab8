"""Rows of well-known function benchmarks as code problems, with their canonical solutions as submissions.

HumanEval: prompt, canonical_solution, test (``check(candidate)``), entry_point. HumanEval-X: the same problems in
Python, whose tests call ``check`` themselves, and in C++, whose tests are a ``main``. MBPP: code, test_list,
test_imports; the function's name is the one that the assertions call.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from typing import Any

from curation.records import SourceError
from curation.verify.programs.problem import CPU_S, CodeLang, CodeProblem, FunctionTests, Submission


def human_eval(row: Mapping[str, Any]) -> tuple[CodeProblem, Submission]:
    """Read a row of HumanEval, or of HumanEval-X in Python or C++, and its canonical solution."""
    if row.get("lang") == "cpp":
        tests = FunctionTests("main", program=row["test"], setup=row["declaration"])
        code = row["prompt"] + row["canonical_solution"]
        return CodeProblem(row["task_id"], function=tests), Submission(CodeLang.CPP, code)
    entry = row.get("entry_point") or _checked_name(row["test"], row["task_id"])
    tests = FunctionTests(entry, program=row["test"], setup=row["prompt"])
    code = row["prompt"] + row["canonical_solution"]
    return CodeProblem(row["task_id"], function=tests), Submission(CodeLang.PYTHON, code)


def mbpp(row: Mapping[str, Any]) -> tuple[CodeProblem, Submission]:
    """Read a row of MBPP and its canonical solution. Each of its assertions is a test with the full time limit."""
    program = "\n".join((*row["test_imports"], *row["test_list"]))
    names = [name for test in row["test_list"] for name in _called(test)]
    entry = next((name for name in names if not hasattr(builtins, name)), names[0] if names else None)
    if entry is None:
        raise SourceError(f"MBPP row {row['task_id']}: no assertion calls a function")
    tests = FunctionTests(entry, program=program)
    limit = CPU_S * max(1, len(row["test_list"]))
    return CodeProblem(f"mbpp/{row['task_id']}", cpu_s=limit, function=tests), Submission(CodeLang.PYTHON, row["code"])


def _checked_name(test: str, row: str) -> str:
    for part in ast.walk(ast.parse(test)):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "check":
            (argument,) = part.args
            if isinstance(argument, ast.Name):
                return argument.id
    raise SourceError(f"HumanEval row {row}: the test calls no check(function); add entry_point")


def _called(test: str) -> list[str]:
    calls = (part.func for part in ast.walk(ast.parse(test)) if isinstance(part, ast.Call))
    return [name.id for name in calls if isinstance(name, ast.Name)]
