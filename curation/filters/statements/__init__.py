"""The format filter: complete open problems with one final answer stay, everything else leaves with its reason.

    apply_rules(problems)       -> text, rule, reason and evidence of each row
    filter_statements(problems) -> kept, dropped
    classify(rows)              -> one verdict per row    for the command line

Debris is removed first (cleaning.py, clutter.py), code of figures is set aside (figures.py), then multiple choice is
taken out (`curation.filters.multiple_choice`), then the rules run in order of precedence (rules.py). A rule drops what
it finds with a precision of .95 or more; what needs judgement is a question to a model
(`curation.questions.doubtful_rows`). Rules of the user's own run last (own_rules.py).
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
