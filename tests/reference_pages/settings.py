"""The page of settings: an everyday table, then every table of a recipe and of a training recipe, each printed once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from curation.config import Recipe
from flows.cli.settings import Setting, display_key, settings_of
from training.recipe import TrainRecipe

Table = Callable[[tuple[str, ...], list[tuple[str, ...]]], str]
HEADS = ("setting", "value", "meaning")

EVERYDAY = tomllib.loads(Path(__file__).with_name("everyday.toml").read_text(encoding="utf-8"))

Row = tuple[str, str, str, str]
"""Name, type, default and meaning."""


@dataclass
class _Table:
    """A table of a recipe: where it is, what it means, its kinds, and the kinds that have each of its settings."""

    path: str
    meaning: str = ""
    kinds: list[str] = field(default_factory=list)
    rows: dict[Row, list[str]] = field(default_factory=dict)

    def add(self, setting: Setting, name: str, kind: str) -> None:
        """Add a setting; the same one of another kind of the table is one row, and so is `kind` itself."""
        row = (name, setting.kind, setting.default, setting.meaning)
        if kind and kind not in self.kinds:
            self.kinds.append(kind)
        if name != "kind" or not kind:
            self.rows.setdefault(row, []).extend([kind] if kind else [])
            return
        if known := next((one for one in self.rows if one[0] == name), None):
            row = (name, f"{known[1]} | {setting.kind}", "", f"{known[3].rstrip('.')}; {setting.meaning}")
            del self.rows[known]
        self.rows = {row: [], **self.rows}

    def content(self) -> tuple[tuple[str, str, str], ...]:
        return tuple((name, kind, meaning) for name, kind, _, meaning in self.rows)


def everyday_keys() -> list[str]:
    return [key for words in EVERYDAY.values() for key in words]


def settings_page(made: str, table: Table) -> list[str]:
    recipes = {"Recipe": list(settings_of(Recipe)), "Training recipe": list(settings_of(TrainRecipe))}
    parts = [
        "# Settings",
        f"{made} `goldilocks settings WORD` searches them, `--train` those of a training recipe; "
        "`goldilocks settings --schema` writes a JSON Schema for editors. `[models.NAME]` is a table with a name of "
        "your own, `[[sources]]` one of several. A value is the default, or a type if there is none; "
        "drop reasons are in parentheses; the paper is "
        "Magistral's report (arXiv 2506.10910).",
        "## Everyday settings",
    ]
    for title, everyday in EVERYDAY.items():
        rows = [(f"`{key.replace('.N.', '.')}`", words) for key, words in everyday.items()]
        parts += [f"{title}:", table(("setting", "meaning"), rows)]
    printed: dict[tuple[tuple[str, str, str], ...], _Table] = {}
    repeated: dict[str, str] = {}
    for title, settings in recipes.items():
        parts.append(f"## {title}")
        for one in _tables(settings):
            heading = f"### `{_heading(one.path)}`" if one.path else "### At the top"
            if (same := printed.get(one.content())) is not None:
                repeated[one.path] = same.path
                parent, _, name = one.path.rpartition(".")
                if parent in repeated and same.path == f"{repeated[parent]}.{name}":
                    continue
                parts += [heading, f"{one.meaning} Settings as in `{_heading(same.path)}`{_differing(one, same)}."]
                continue
            printed[one.content()] = one
            parts += [heading, one.meaning]
            parts.append(table(HEADS, [_cells(row, kinds, one.kinds) for row, kinds in one.rows.items()]))
    return parts


def _tables(settings: Iterable[Setting]) -> list[_Table]:
    tables = {"": _Table("")}
    for setting in settings:
        path = display_key(setting.key)
        parent, _, name = path.rpartition(".")
        if setting.kind == "table":
            tables.setdefault(path, _Table(path)).meaning = setting.meaning
        else:
            kind = re.search(r"\((\w+)\)\.[^()]*$", setting.key)
            tables.setdefault(parent, _Table(parent)).add(setting, name, kind[1] if kind else "")
    return [one for one in tables.values() if one.rows]


def _heading(path: str) -> str:
    return f"[[{path.removesuffix('.N')}]]" if path.endswith(".N") else f"[{path.replace('.N.', '.')}]"


def _cells(row: Row, kinds: list[str], all_kinds: list[str]) -> tuple[str, str, str]:
    name, kind, default, meaning = row
    some = f" ({', '.join(kinds)})" if kinds and len(kinds) < len(all_kinds) else ""
    value = f"`{default}`" if default else kind
    if default == "required" or (default and (" | " in kind or kind.startswith("list"))):
        value = f"{kind}, {'required' if default == 'required' else value}"
    return f"`{name}`{some}", value, meaning


def _differing(one: _Table, same: _Table) -> str:
    own, other = ({name: default for name, _, default, _ in table.rows} for table in (one, same))
    found = [f"`{name}` is `{value}`" for name, value in own.items() if value != other[name]]
    return f"; by default {' and '.join(found)}" if found else ""
