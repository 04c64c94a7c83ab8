"""The page of settings: an everyday table, then every table of a recipe and of a training recipe, each printed once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from curation.config import Recipe
from flows.cli.settings import Setting, display_key, settings_of
from training.recipe import TrainRecipe

Table = Callable[[tuple[str, ...], list[tuple[str, ...]]], str]
HEADS = ("setting", "value", "meaning")

EVERYDAY = {
    "Recipe": {
        "name": "Name of the run and of the set",
        "flow": "Math or code",
        "sources.N.path": "File, folder, or name on the Hugging Face hub",
        "sources.N.columns.statement": "Column with the problem",
        "sources.N.columns.answer": "Column with the reference answer",
        "sources.N.license": "Licence of the source",
        "sources.N.limit": "Read only the first rows",
        "models.NAME.kind": "vLLM on this machine, servers, or recorded attempts",
        "models.NAME.model": "Folder or hub name of the model",
        "models.NAME.revision": "Commit of a model on the hub",
        "models.NAME.urls": "Addresses of OpenAI-compatible servers",
        "models.NAME.api_key_env": "Environment variable with their key",
        "models.NAME.thinking": "Tags around the model's thoughts",
        "models.NAME.decoding.temperature": "Sampling temperature",
        "models.NAME.decoding.max_tokens": "Max tokens of one attempt",
        "stage1.model": "Model that measures difficulty first",
        "stage1.band.attempts": "Max attempts per problem",
        "stage1.band.min_correct": "Fewer correct attempts: too hard",
        "stage1.band.max_pass_rate": "A higher pass rate: too easy",
        "stage2.model": "Stronger model that measures the whole set again",
        "decontamination.benches": "Benchmarks whose problems leave",
        "questions.NAME.model": "Model that answers a question about rows",
        "export.size": "Max problems in the set",
        "export.license": "Licence of the set",
        "schedule.cron": "When the recipe runs by itself",
    },
    "Training recipe": {
        "model": "Model that is trained, a table as above",
        "data.folders": "Curated sets to train on",
        "steps": "Updates of the generators, one batch each",
        "rewards.max_length": "Max tokens of one rollout",
        "collector.n_batch": "Rollouts per batch",
        "collector.group_size": "Rollouts per problem",
        "objective.kind": "Loss",
        "objective.eps_high": "Upper bound of the clipped ratio",
        "optim.learning_rate": "Learning rate",
        "checkpoints.every": "Steps between checkpoints",
        "evaluation.every": "Steps between evaluations",
    },
}
"""What most recipes set, in few words: at most 40 settings in all."""


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

    def defaults(self) -> dict[str, str]:
        return {name: default for name, _, default, _ in self.rows}

    def content(self) -> tuple[tuple[str, str, str], ...]:
        return tuple((name, kind, meaning) for name, kind, _, meaning in self.rows)


def everyday_keys() -> list[str]:
    """Return the keys of the everyday table."""
    return [key for words in EVERYDAY.values() for key in words]


def settings_page(made: str, table: Table) -> list[str]:
    """Return the parts of the page."""
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
        path, kind = display_key(setting.key), ""
        parent, _, name = path.rpartition(".") if setting.kind != "table" else (path, "", "")
        if found := re.search(r"\((\w+)\)\.[^()]*$", setting.key):
            kind = found[1]
        if setting.kind == "table":
            tables.setdefault(path, _Table(path)).meaning = setting.meaning
        else:
            tables.setdefault(parent, _Table(parent)).add(setting, name, kind)
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
    other = same.defaults()
    found = [f"`{name}` is `{value}`" for name, value in one.defaults().items() if value != other[name]]
    return f"; by default {' and '.join(found)}" if found else ""
