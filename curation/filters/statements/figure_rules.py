"""The format rules about figures and tables that are not there: what a statement points at, and what it never names.

Two drop a row alone: the graph of a function that nothing else gives, and a name in the question that the text never
introduces. That a figure is spoken of does not say that it is needed: `missing_figure` is a feature of the classifier
(scoring.py), which reads what else the text says of it (features.py).
"""

from __future__ import annotations

import polars as pl

from curation.filters.statements import external_references, figures, undefined_names
from curation.filters.statements.expressions import (
    ANY_ROW,
    STATEMENT,
    StatementRule,
    either_text,
    matched_text,
)
from curation.records import DropReason

_DRAWN_HERE = STATEMENT.str.contains(figures.FIGURE, literal=True)
_UNDRAWN = (
    pl.when(STATEMENT.str.contains(external_references.DRAWN))
    .then(STATEMENT.str.replace_all(external_references.SHOWN_BY_ROWS, " ¦ "))
    .otherwise(STATEMENT)
)

UNDRAWN_GRAPH = StatementRule(
    "undrawn_graph",
    DropReason.MISSING_FIGURE,
    ANY_ROW,
    either_text(
        (_DRAWN_HERE | STATEMENT.str.contains(external_references.FUNCTION_GIVEN)).not_(),
        matched_text(STATEMENT, external_references.UNDRAWN),
    ),
    needles=external_references.FIGURE_NEEDLES,
)

UNDEFINED_NAME = StatementRule(
    "undefined_name",
    DropReason.MISSING_FIGURE,
    STATEMENT.str.contains(undefined_names.GATE) | STATEMENT.str.contains(undefined_names.UNKNOWN_GATE),
    either_text(_DRAWN_HERE.not_(), undefined_names.undefined_name_expression(STATEMENT)),
)

MISSING_FIGURE = StatementRule(
    "missing_figure",
    DropReason.MISSING_FIGURE,
    ANY_ROW,
    pl.coalesce(
        matched_text(STATEMENT, external_references.PICTURE),
        either_text(
            _DRAWN_HERE.not_(),
            matched_text(_UNDRAWN, external_references.FIGURE, external_references.FIGURE_HARMLESS),
        ),
    ),
    needles=external_references.FIGURE_NEEDLES,
)

MISSING_TABLE = StatementRule(
    "missing_table",
    DropReason.MISSING_FIGURE,
    ANY_ROW,
    either_text(
        STATEMENT.str.contains(external_references.TABLE_HERE).not_(),
        matched_text(STATEMENT, external_references.TABLE),
    ),
    needles=external_references.TABLE_NEEDLES,
)
