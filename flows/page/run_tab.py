"""The tab of a run: funnel, progress, durations and card."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from curation.publish import receipts
from curation.storage.locks import is_locked
from flows.page.open_runs import inside, shown_run
from flows.page.rendering import show
from flows.page.runs import ShownRun
from flows.pipelines.planned_costs import compare_with_plan, stored_plan
from flows.pipelines.run_tables import status_table, verifier_of
from flows.publish.versions import newest_run
from flows.run.history import last_command, stage_seconds
from flows.run.progress import read_metrics
from flows.run.run_folder import open_run
from flows.stages.attempts import attempts_of

WIDTH = 1000.0
"""The funnel's width in its own units."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Kept rows, or those dropped for a reason, in a stage's bar."""

    x: float
    width: float
    rows: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class FunnelStage:
    """A stage of the funnel.

    ``seconds`` is None if unknown, ``planned`` if unplanned or ended.
    """

    table: dict[str, Any]
    bars: tuple[Bar, ...]
    seconds: float | None
    progress: dict[str, Any] | None
    planned: str | None

    @property
    def place(self) -> float:
        """Return the finished share, 0 to 1."""
        if self.table["finished"]:
            return 1.0
        if self.progress is not None and self.progress.get("total"):
            return float(self.progress["problems"] / self.progress["total"])
        total = self.table["shards_in_all"]
        return self.table["shards"] / total if total else 0.0


def funnel_stages(run: ShownRun) -> list[FunnelStage]:
    """Return a run's funnel; the largest stage has the full `WIDTH`."""
    table = status_table(run.folder)
    times = stage_seconds(run.folder)
    last = {row["stage"]: row for row in read_metrics(run.folder) if "problems" in row}
    planned = _planned(run.folder)
    most = max((stage["in"] for stage in table["stages"]), default=0) or 1
    return [
        FunnelStage(
            stage,
            _bars(stage, WIDTH / most),
            times.get(stage["name"]),
            last.get(stage["name"]),
            None if stage["finished"] else planned.get(stage["name"]),
        )
        for stage in table["stages"]
    ]


def _planned(folder: Path) -> dict[str, str]:
    return {
        attempts_of(part).name: f"planned {plan.attempts} attempts, {plan.tokens} tokens"
        for part, plan in stored_plan(open_run(folder)).items()
    }


def _bars(stage: dict[str, Any], scale: float) -> tuple[Bar, ...]:
    bars, x = [Bar(0.0, scale * stage["kept"], stage["kept"], None)], scale * stage["kept"]
    for reason, rows in sorted(stage["reasons"].items(), key=lambda item: -item[1]):
        bars.append(Bar(x, scale * rows, rows, reason))
        x += scale * rows
    return tuple(bar for bar in bars if bar.rows)


def _run(request: Request) -> Response:
    run = shown_run(request)
    texts: dict[str, Any] = {}
    for name, file in (("card", "README.md"), ("receipt", receipts.PAGE)):
        path = run.folder / "curated" / file
        texts[name] = path.read_text(encoding="utf-8") if path.is_file() else None
    if texts["card"] and texts["receipt"]:
        texts["card"] = texts["card"].replace(f"]({receipts.PAGE})", "](#receipt)")
    return show(request, "run.html", run=run, tab="run", **texts, **_live(run))


def _part(request: Request) -> Response:
    run = shown_run(request)
    return show(request, "run_part.html", run=run, **_live(run))


def _live(run: ShownRun) -> dict[str, Any]:
    opened = newest_run(run.folder)
    warnings = [row for row in read_metrics(run.folder) if "warning" in row]
    return {
        "stages": funnel_stages(run),
        "table": status_table(run.folder),
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
