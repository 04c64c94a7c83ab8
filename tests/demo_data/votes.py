"""Recorded votes of an imaginary model on the demo's rows with a sign of trouble."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from curation.filters.statements import filter_statements
from curation.questions.doubtful_rows import DOUBTFUL_ROWS
from curation.records import PROBLEM, PromptRequest
from tests.demo_data.defects import VOTED
from tests.demo_data.rows import Row


def recorded_votes(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield each question that the demo asks about a row, and three answers to it."""
    problems = pl.DataFrame(
        [
            dict.fromkeys(PROBLEM.names())
            | {"statement": row.question, "answer": row.reference, "choices": row.options, "lang": row.lang, "row": at}
            for at, row in enumerate(rows)
        ],
        schema=PROBLEM,
    )
    kept = filter_statements(problems).kept
    asked, requests = DOUBTFUL_ROWS.select(kept)
    seen: set[str] = set()
    for at, request in zip(asked["at"], requests, strict=True):
        assert isinstance(request, PromptRequest)
        planted = rows[kept["row"][at]].planted
        word = VOTED.get(planted.kind, "USABLE") if planted is not None else "USABLE"
        if request.id not in seen:
            seen.add(request.id)
            answers = [{"text": f"{why} VERDICT: {word}"} for why in ("I checked the text.", "As it stands.", "So.")]
            yield {"asked": request.statement, "answers": answers}
