"""The format filter: complete open problems with one final answer stay, everything else leaves with its reason.

    score_statements(problems)  -> kept with scores, dropped       for the pipeline, whose next stage is
    drop_unusable(kept, scores) -> kept, dropped                   the threshold on the scores
    filter_statements(problems) -> kept, dropped                   both at once
    classify(rows)              -> one verdict per row             for the command line

Rules stand side by side in `RULES` (rules.py) with the expressions they look for in words.py (proofs),
external_references.py (what a statement points at), question_type.py (questions and answers) and completeness.py (cut
off, debris, no problem). Rules that err too often drop nothing alone: what they find is a feature of a small classifier
(scoring.py, features.py, ngrams.py); a model may be asked about what stays in doubt (opinions.py). Debris is removed in
cleaning.py, labels and points in clutter.py;
language_tags.py compares text and language tag; multiple choice is opened by `curation.filters.multiple_choice`.

It does not judge whether an answer can be verified, nor what needs understanding (missing premises).
"""

from curation.config import StatementSettings
from curation.filters.statements.expressions import StatementRule
from curation.filters.statements.filtering import (
    FilterResult,
    apply_rules,
    classify,
    clean_statements,
    drop_unusable,
    filter_statements,
    score_statements,
)
from curation.filters.statements.rules import RULES

VERSION = "statements@11"
"""Changed whenever a decision could change."""

__all__ = [
    "RULES",
    "VERSION",
    "FilterResult",
    "StatementRule",
    "StatementSettings",
    "apply_rules",
    "classify",
    "clean_statements",
    "drop_unusable",
    "filter_statements",
    "score_statements",
]
