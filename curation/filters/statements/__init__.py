"""Keeps complete open problems with one final answer, cleaned."""

from curation.config import StatementSettings
from curation.filters.statements.filtering import (
    apply_rules,
    classify,
    filter_statements,
    find_choices,
    split_rows,
)
from curation.filters.statements.own_rules import apply_own_rules, find_rule
from curation.filters.statements.rules import RULES

VERSION = "statements@16"
"""Changed whenever a decision could change."""

__all__ = [
    "RULES",
    "VERSION",
    "StatementSettings",
    "apply_own_rules",
    "apply_rules",
    "classify",
    "filter_statements",
    "find_choices",
    "find_rule",
    "split_rows",
]
