"""Programs that others wrote, each with its input: solutions of data sets with their tests, and of contest packages.

Read where they lie (`tests.places.SHARED_DATA`, folders of Kattis packages); nothing of them is part of the project.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from curation.verify.programs.problem import CodeLang

LANGS = {".py": CodeLang.PYTHON, ".py3": CodeLang.PYTHON, ".cpp": CodeLang.CPP, ".cc": CodeLang.CPP}
CPP_HEAD = "#include <bits/stdc++.h>\nusing namespace std;\n"


class Style(NamedTuple):
    """A program, its standard input, and the C++ standard it is written in."""

    lang: CodeLang
    code: str
    stdin: str
    standard: int = 20


def _rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def of_data_sets(folder: Path) -> dict[str, Style]:
    """Return the solutions of HumanEval, HumanEval-X and MBPP with their tests as programs that print what they end by.

    Every fifth Python program has one assertion too many, which fails.
    """
    found: dict[str, Style] = {}
    for row in _rows(folder / "humaneval.jsonl"):
        called = f"check({row['entry_point']})\nprint('right')\n"
        code = f"{row['prompt']}{row['canonical_solution']}\n{row['test']}\n{called}"
        found[f"HumanEval {row['task_id']}"] = Style(CodeLang.PYTHON, code, "")
    for row in _rows(folder / "humaneval_x_python_cpp.jsonl"):
        lang = CodeLang.PYTHON if row["lang"] == "python" else CodeLang.CPP
        code = f"{row['prompt']}{row['canonical_solution']}\n{row['test']}\n"
        code = CPP_HEAD + code if lang is CodeLang.CPP else code
        found[f"HumanEval-X {row['task_id']}"] = Style(lang, code, "")
    for row in _rows(folder / "mbpp_sanitized.jsonl"):
        asserts = [*row["test_imports"], *row["test_list"]]  # type: ignore[misc]
        found[f"MBPP {row['task_id']}"] = Style(
            CodeLang.PYTHON, "\n".join([str(row["code"]), *asserts, "print(1)"]), ""
        )
    for place, (name, style) in enumerate(found.items()):
        if style.lang is CodeLang.PYTHON and place % 5 == 0:
            found[name] = style._replace(code=f"{style.code}\nassert not print('so far')\nassert 1 == 2, 'too many'\n")
    return found


def of_packages(folder: Path, most_bytes: int = 1 << 20) -> Iterator[tuple[str, Style]]:
    """Yield every submission in Python 3 or C++ of the packages below a folder, on its package's smallest input."""
    for submissions in sorted(folder.rglob("submissions")):
        inputs = sorted(submissions.parent.glob("data/**/*.in"), key=lambda path: path.stat().st_size)
        if not inputs or inputs[0].stat().st_size > most_bytes:
            continue
        for path in sorted(submissions.rglob("*")):
            lang = LANGS.get(path.suffix)
            if lang is not None and path.is_file():
                code, stdin = (text.read_text("utf-8", errors="replace") for text in (path, inputs[0]))
                yield str(path.relative_to(folder)), Style(lang, code, stdin)
