"""The format filter: complete open problems with one final answer stay, everything else leaves with its reason.

    measure(problems)           -> verdicts, scores                for the pipeline, whose next stages are
    drop_ruled(problems, …)     -> kept with scores, dropped       the threshold on what rules are worth, and
    drop_unusable(kept, scores) -> kept, dropped                   those on the classifier's scores
    filter_statements(problems) -> kept, dropped                   all at once
    classify(rows)              -> one verdict per row             for the command line

Rules stand side by side in `RULES` (rules.py) with the expressions they look for in words.py (proofs),
external_references.py (what a statement points at), question_type.py (questions and answers), completeness.py (cut
off, debris, no problem) and broken_off.py (a text that asks nothing and breaks off). Rules that err too often drop
nothing alone: what they find is a feature of a small classifier (scoring.py, features.py, ngrams.py); a model may be
asked about what stays uncertain (`curation.questions.doubtful_rows`). How often each rule was right is its drops' score
(precision.py). What all of them find is measured once (measuring.py), thresholds decide by it (filtering.py). Debris is
removed by cleaning.py, labels and points by clutter.py, multiple choice is opened by
`curation.filters.multiple_choice`, all from rewriting.py; language_tags.py compares text and language tag.

It does not judge whether an answer can be verified, nor what needs understanding (missing premises).
"""

from curation.config import StatementSettings
from curation.filters.statements.expressions import StatementRule
from curation.filters.statements.filtering import (
    FilterResult,
    apply_rules,
    classify,
    clean_statements,
    drop_ruled,
    drop_unusable,
    filter_statements,
    score_statements,
)
from curation.filters.statements.measuring import Measured, measure
from curation.filters.statements.rules import RULES

VERSION = "statements@15"
"""Changed whenever a decision could change."""

__all__ = [
    "RULES",
    "VERSION",
    "FilterResult",
    "Measured",
    "StatementRule",
    "StatementSettings",
    "apply_rules",
    "classify",
    "clean_statements",
    "drop_ruled",
    "drop_unusable",
    "filter_statements",
    "measure",
    "score_statements",
]
