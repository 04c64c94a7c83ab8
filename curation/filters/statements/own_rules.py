"""Applies a user's format rules, `[statements] rules = ["own.py:RULE"]`, after the built-in ones.

They run in the stage's process, with the user's rights and no time limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import polars as pl

from curation.plugins import PluginRef, find_plugin
from curation.records import DropReason, SourceError

MAX_EVIDENCE = 300
"""Characters of evidence."""


@runtime_checkable
class FormatRule(Protocol):
    """A rule that drops rows, each by its own texts alone.

    Example, in `own.py` next to the recipe::

        class Long:
            def drop(self, statement, answer):
                words = len(statement.split())
                return f"{words} words" if words > 400 else None

        RULE = Long()
    """

    def drop(self, statement: str, answer: str | None) -> str | None:
        """Return evidence to drop a row, None to keep it."""
        ...


def find_rule(name: str, folder: Path) -> PluginRef:
    """Load a recipe's rule.

    Raises:
        ConfigError: it cannot be loaded or lacks its method.
    """
    return find_plugin(name, folder, "statements.rules", FormatRule, "an object with the method `drop`")


def apply_own_rules(judged: pl.DataFrame, problems: pl.DataFrame, rules: Sequence[PluginRef]) -> pl.DataFrame:
    """Apply the user's rules to kept rows.

    Raises:
        SourceError: a rule fails on a row.
    """
    if not rules:
        return judged
    rows = judged.select("statement", "answer", "rule", "reason", "evidence").rows()
    origins = problems.select("id", "source", "row").rows()
    verdicts = [
        (rule, reason, evidence) if reason is not None else _first_verdict(rules, statement, answer, origin)
        for (statement, answer, rule, reason, evidence), origin in zip(rows, origins, strict=True)
    ]
    columns = {name: [verdict[at] for verdict in verdicts] for at, name in enumerate(("rule", "reason", "evidence"))}
    return judged.with_columns(pl.Series(name, values, pl.String) for name, values in columns.items())


def _first_verdict(
    rules: Sequence[PluginRef], statement: str, answer: str | None, origin: tuple[str, str, int]
) -> tuple[str | None, str | None, str | None]:
    for rule in rules:
        plugin = rule.load()
        try:
            evidence = plugin.value.drop(statement, answer)
        except Exception as error:
            name, source, row = origin
            raise SourceError(
                f"statements.rules: {plugin.failure(error)} (row {row} of source {source}, problem {name})."
            ) from error
        if evidence is not None:
            return rule.name, DropReason.OWN_RULE.value, str(evidence)[:MAX_EVIDENCE]
    return None, None, None
