"""The tab of a run: funnel, progress, durations and card."""

from __future__ import annotations

import time
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from curation.publish import receipts
from curation.storage.locks import is_locked
from flows.page.open_runs import inside, shown_run
from flows.page.rendering import show
from flows.page.runs import ShownRun
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
    most = max((stage["in"] for stage in table["stages"]), default=0) or 1
    return [
        {
            "table": stage,
            "bars": _bars(stage, WIDTH / most),
            "seconds": times.get(stage["name"]),
            "progress": last.get(stage["name"]),
            "planned": None if stage["finished"] else planned.get(stage["name"]),
            "place": _place(stage, last.get(stage["name"])),
        }
        for stage in table["stages"]
    ]


def _place(stage: Table, progress: Table | None) -> float:
    if stage["finished"]:
        return 1.0
    if progress is not None and progress.get("total"):
        return float(progress["problems"] / progress["total"])
    total = stage["shards_in_all"]
    return stage["shards"] / total if total else 0.0


def _bars(stage: Table, scale: float) -> list[Table]:
    """Return the bars of kept rows and of each drop reason, the largest first."""
    bars, x = [], 0.0
    dropped = sorted(stage["reasons"].items(), key=lambda item: -item[1])
    for reason, rows in ((None, stage["kept"]), *dropped):
        bars += [{"x": x, "width": scale * rows, "rows": rows, "reason": reason}] if rows else []
        x += scale * rows
    return bars


def _run(request: Request) -> Response:
    run = shown_run(request)
    texts: Table = {}
    for name, file in (("card", "README.md"), ("receipt", receipts.PAGE)):
        path = run.folder / "curated" / file
        texts[name] = path.read_text(encoding="utf-8") if path.is_file() else None
    if texts["card"] and texts["receipt"]:
        texts["card"] = texts["card"].replace(f"]({receipts.PAGE})", "](#receipt)")
    return show(request, "run.html", run=run, tab="run", **texts, **_live(run))


def _part(request: Request) -> Response:
    run = shown_run(request)
    return show(request, "run_part.html", run=run, **_live(run))


def _live(run: ShownRun) -> Table:
    opened, table = newest_run(run.folder), status_table(run.folder, with_lines=False)
    warnings = [row for row in read_metrics(run.folder) if "warning" in row]
    return {
        "stages": funnel_stages(run, table),
        "table": table,
        "is_going": is_locked(run.folder),
        "last_command": last_command(run.folder),
        "planned": compare_with_plan(opened, verifier_of(opened)),
        "warnings": warnings[-5:],
        "now": time.time(),
    }


def _picture(request: Request) -> Response:
    run = shown_run(request)
    name, folder = request.path_params["name"], run.folder / "curated" / "plots"
    return FileResponse(inside(folder, name) if name.endswith(".png") else inside(folder, ".none"))


ROUTES = [
    Route("/r/{run}/", _run),
    Route("/r/{run}/part", _part),
    Route("/r/{run}/plots/{name}", _picture),
]
