"""Sizes of the project: source, tests, modules, settings, commands, drop reasons, dependencies, words of the docs.

Everything is counted over the files of the checkout that git does not ignore. Lines are all lines, blank ones too.
"""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.gates.base import Limit, Measured, gate
from tests.places import ROOT

PACKAGES = ("curation", "training", "flows")


@cache
def _files() -> tuple[Path, ...]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    named = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return tuple(path for name in sorted(set(named)) if name and (path := ROOT / name).is_file())


def _below(*tops: str, suffix: str = ".py") -> list[Path]:
    return [path for path in _files() if path.suffix == suffix and path.relative_to(ROOT).parts[0] in tops]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _lines(*tops: str) -> Counter[str]:
    return Counter({top: sum(len(_text(path).splitlines()) for path in _below(top)) for top in tops})


@gate("source-lines", Limit("<=", 60_300), until="part 7")
def source_lines() -> Measured:
    """Return the lines of Python of the three packages; the limit is the sum of the plan's rooms."""
    lines = _lines(*PACKAGES)
    return Measured(lines.total(), note=", ".join(f"{top} {count:,}" for top, count in lines.items()))


@gate("test-lines", Limit("<=", 40_000), until="part 10")
def test_lines() -> Measured:
    """Return the lines of Python of the tests."""
    return Measured(_lines("tests").total())


@gate("modules", Limit("<=", 400), until="part 7")
def modules() -> Measured:
    """Return the number of Python files of the three packages."""
    return Measured(len(_below(*PACKAGES)))


@gate("settings", Limit("<=", 260))
def settings() -> Measured:
    """Return how many distinct keys take a value in a recipe or in a trainer's recipe.

    Distinct: a key of a table counts once, wherever a recipe may have such a table (a policy, for example), also if it
    is in both recipes. A key whose value can only be a table, or tables, does not count; their keys do.
    """
    from curation.config import Recipe
    from training.recipe import TrainRecipe

    found = set()
    for recipe in (Recipe, TrainRecipe):
        schema = recipe.model_json_schema()
        tables = schema.pop("$defs", {})
        for name, table in {**tables, recipe.__name__: schema}.items():
            found |= {(name, key) for key, kind in table.get("properties", {}).items() if _takes_value(kind, tables)}
    return Measured(len(found), note=f"in {len({name for name, _ in found})} tables")


def _takes_value(kind: dict[str, Any], tables: dict[str, Any]) -> bool:
    """Return whether a JSON schema has a branch that is no table, null aside."""
    if "$ref" in kind:
        return "properties" not in tables[kind["$ref"].rpartition("/")[2]]
    for branches in ("anyOf", "oneOf"):
        if branches in kind:
            return any(_takes_value(branch, tables) for branch in kind[branches] if branch.get("type") != "null")
    inner = kind.get("items") or kind.get("additionalProperties")
    return _takes_value(inner, tables) if isinstance(inner, dict) else True


@gate("commands", Limit("<=", 18))
def commands() -> Measured:
    """Return how many commands `goldilocks --help` lists; `verify` has six of its own."""
    import typer.main

    from flows.cli import app

    command: Any = typer.main.get_command(app)
    return Measured(len(command.commands))


@gate("drop-reasons", Limit("<=", 40))
def drop_reasons() -> Measured:
    """Return how many reasons a row may be dropped for."""
    from curation.records import DropReason

    return Measured(len(DropReason))


@gate("core-dependencies", Limit("<=", 25))
def dependencies() -> Measured:
    """Return how many packages `pip install goldilocks-rl` asks for by name, extras aside."""
    table = tomllib.loads(_text(ROOT / "pyproject.toml"))
    return Measured(len(table["project"]["dependencies"]))


@gate("words-of-docs", Limit("<=", 26_000))
def words_of_docs() -> Measured:
    """Return the words of all Markdown below `docs` and `tests`."""
    words = Counter(
        {top: sum(len(_text(one).split()) for one in _below(top, suffix=".md")) for top in ("docs", "tests")}
    )
    return Measured(words.total(), note=", ".join(f"{top} {count:,}" for top, count in words.items()))


SETTINGS = re.compile(r"(?:Settings|NamedModels|LiveModel)$")
"""Bases of classes whose strings are the rows of the settings page, and no docstrings."""


@cache
def _docstrings() -> tuple[str, ...]:
    """Return the docstrings of the packages: of modules, classes, functions, and those after a variable."""
    return tuple(text for path in _below(*PACKAGES) for text in _docstrings_of(ast.parse(_text(path))))


def _docstrings_of(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(SETTINGS.search(ast.unparse(base)) for base in node.bases):
            if text := ast.get_docstring(node):
                yield text
            continue
        for statement in getattr(node, "body", []) if isinstance(node, ast.Module | ast.ClassDef) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                yield str(statement.value.value)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (text := ast.get_docstring(node)):
            yield text


@cache
def _docstring_words() -> int:
    return sum(len(text.split()) for text in _docstrings())


@gate("docstring-words-per-line", Limit("<=", 0.85), until="part 7")
def words_per_line() -> Measured:
    """Return the docstring words of the packages per line of Python; the plan is half of 1.7."""
    words = _docstring_words()
    return Measured(words / _lines(*PACKAGES).total(), note=f"{words:,} words")


def _per_ten_thousand(pattern: str) -> Measured:
    """Return how often docstrings have words of our former dialect."""
    compiled = re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
    found = Counter(match.lower() for text in _docstrings() for match in compiled.findall(text))
    note = ", ".join(f"{word} {count}" for word, count in found.most_common())
    return Measured(10_000 * found.total() / _docstring_words(), note=note)


@gate("dialect-told", Limit("<=", 5, "per 10,000 docstring words"))
def told_tells() -> Measured:
    """Count *told* and *tells*."""
    return _per_ten_thousand("told|tells?")


@gate("dialect-says", Limit("<=", 5, "per 10,000 docstring words"))
def says() -> Measured:
    """Count *says* and *said*."""
    return _per_ten_thousand("says?|said")


@gate("dialect-behind", Limit("<=", 5, "per 10,000 docstring words"))
def behind() -> Measured:
    """Count *behind*, *beside*, *stands* and *lies*."""
    return _per_ten_thousand("behind|beside|stands?|lies?")
