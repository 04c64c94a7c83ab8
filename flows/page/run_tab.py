"""The tab of a run, with funnel, progress, durations and card, and the tab of its rows."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from curation.publish import receipts
from curation.storage.locks import is_locked
from flows.page.open_runs import ShownRun, curation_run, shown_run
from flows.page.rendering import show
from flows.page.row_index import CURATED, GOING, SORTS, read_query
from flows.pipelines.run_tables import compare_with_plan, status_table, stored_plan, verifier_of
from flows.publish.versions import newest_run
from flows.run.history import last_command, stage_seconds
from flows.run.progress import read_metrics
from flows.run.run_folder import open_run
from flows.stages.attempts import attempts_of

WIDTH = 1000.0
"""The funnel's width in its own units."""

Table = dict[str, Any]


def funnel_stages(run: ShownRun, table: Table) -> list[Table]:
    """Return a run's funnel; the largest stage has the full `WIDTH`.

    ``seconds`` is None if unknown, ``planned`` if unplanned or ended; ``place`` is the finished share, 0 to 1.
    """
    times = stage_seconds(run.folder)
    last = {row["stage"]: row for row in read_metrics(run.folder) if "problems" in row}
    planned = {
        attempts_of(part).name: f"planned {plan.attempts} attempts, {plan.tokens} tokens"
        for part, plan in stored_plan(open_run(run.folder)).items()
    }
    most, stages = max((stage["in"] for stage in table["stages"]), default=0) or 1, []
    for stage in table["stages"]:
        counts = [(None, stage["kept"]), *sorted(stage["reasons"].items(), key=lambda item: -item[1])]
        bars = [{"width": WIDTH / most * rows, "rows": rows, "reason": reason} for reason, rows in counts if rows]
        progress, total = last.get(stage["name"]), stage["shards_in_all"]
        place = stage["shards"] / total if total else 0.0
        if progress is not None and progress.get("total"):
            place = progress["problems"] / progress["total"]
        stages.append(
            {
                "table": stage,
                "bars": bars,
                "seconds": times.get(stage["name"]),
                "progress": None if progress is None else {"asked_again": 0, "latency_s": 0, **progress},
                "planned": None if stage["finished"] else planned.get(stage["name"]),
                "place": 1.0 if stage["finished"] else place,
            }
        )
    return stages


def _run(request: Request) -> Response:
    run = shown_run(request)
    texts: Table = {}
    for name, file in (("card", "README.md"), ("receipt", receipts.PAGE)):
        path = run.folder / "curated" / file
        texts[name] = path.read_text(encoding="utf-8") if path.is_file() else None
    if texts["card"] and texts["receipt"]:
        texts["card"] = texts["card"].replace(f"]({receipts.PAGE})", "](#receipt)")
    opened, table = newest_run(run.folder), status_table(run.folder, with_lines=False)
    warnings = [row for row in read_metrics(run.folder) if "warning" in row]
    return show(
        request,
        "run.html",
        run=run,
        tab="run",
        stages=funnel_stages(run, table),
        table=table,
        is_going=is_locked(run.folder),
        last_command=last_command(run.folder),
        planned=compare_with_plan(opened, verifier_of(opened)),
        warnings=warnings[-5:],
        **texts,
    )


def _picture(request: Request) -> Response:
    run = shown_run(request)
    name, folder = request.path_params["name"], run.folder / "curated" / "plots"
    path = folder / name
    is_picture = name.endswith(".png") and not name.startswith(".") and path.is_file()
    if not is_picture or path.resolve().parent != folder.resolve():
        raise HTTPException(404)
    return FileResponse(path)


ROWS_A_PAGE = 50


def _rows(request: Request) -> Response:
    shown, run = curation_run(request)
    index = request.app.state.page.rows(run)
    query = read_query(request.query_params)
    found = index.find(query)
    count, text = found.places.len(), request.query_params.get("page", "0")
    pages = max(1, -(-count // ROWS_A_PAGE))
    page = min(int(text), pages - 1) if text.isdecimal() and len(text) < 8 else 0
    rows = index.rows(found, page * ROWS_A_PAGE, ROWS_A_PAGE)
    return show(
        request,
        "rows.html",
        run=shown,
        tab="rows",
        query=query,
        facets=found.facets,
        rows=rows,
        found=count,
        height=index.table.height,
        page=page,
        pages=pages,
        titles={**index.titles, CURATED: CURATED, GOING: GOING},
        sorts=list(SORTS),
    )


ROUTES = [
    Route("/r/{run}/", _run),
    Route("/r/{run}/rows", _rows),
    Route("/r/{run}/plots/{name}", _picture),
]
