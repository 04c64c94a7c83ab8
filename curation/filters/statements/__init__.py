"""Filters statements: complete open problems with one final answer stay, others leave with a reason.

Debris is removed (cleaning.py, clutter.py), code of figures is set aside (figures.py), multiple choice is opened, and
the rules run in order of precedence (rules.py), those of the user last (own_rules.py). A rule has a precision of .95 or
more; what needs judgement is a question to a model (`curation.questions.doubtful_rows`).
"""

from curation.config import StatementSettings
from curation.filters.statements.expressions import StatementRule
from curation.filters.statements.filtering import (
    FilterResult,
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
    "FilterResult",
    "StatementRule",
    "StatementSettings",
    "apply_own_rules",
    "apply_rules",
    "classify",
    "filter_statements",
    "find_choices",
    "find_rule",
    "split_rows",
]
