"""The tab of rows, with search, facets and sorting."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from flows.page.marking import deciding_words
from flows.page.open_runs import curation_run
from flows.page.rendering import show
from flows.page.row_index import CURATED, GOING, SORTS, read_query

ROWS_A_PAGE = 50


def _rows(request: Request) -> Response:
    shown, run = curation_run(request)
    index = request.app.state.page.runs.rows(run)
    query = read_query(request.query_params)
    found = index.find(query)
    page = page_number(request, found.places.len())
    rows = index.rows(found, page * ROWS_A_PAGE, ROWS_A_PAGE)
    for row in rows:
        words = [*query.words.split(), *deciding_words(row["evidence"], row["statement"])]
        row["marked"] = words
    return show(
        request,
        "rows.html",
        run=shown,
        tab="rows",
        query=query,
        facets=found.facets,
        rows=rows,
        found=found.places.len(),
        height=index.height,
        page=page,
        pages=pages_of(found.places.len()),
        titles={**index.titles, CURATED: CURATED, GOING: GOING},
        sorts=list(SORTS),
    )


def page_number(request: Request, rows: int) -> int:
    """Return an address's page number, from 0."""
    text = request.query_params.get("page", "0")
    return min(int(text), pages_of(rows) - 1) if text.isdecimal() and len(text) < 8 else 0


def pages_of(rows: int) -> int:
    """Return the number of pages."""
    return max(1, -(-rows // ROWS_A_PAGE))


ROUTES = [Route("/r/{run}/rows", _rows)]
