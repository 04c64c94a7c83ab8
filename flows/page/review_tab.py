"""The tab of the review: disputed labels one at a time.

Invariant: a message is checked and written to disk before it is answered; a repeated verdict is written once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from curation.publish import review
from curation.questions.debates import evidence
from curation.records import ConfigError, GoldilocksError, StoreError, VerifierError
from flows.page.open_runs import Gathered, OpenRuns, curation_run
from flows.page.problem_page import attempts_at
from flows.page.rendering import show
from flows.pipelines.run_tables import filters_of
from flows.publish.debates import read_debates
from flows.publish.disputes import settle, take_back
from flows.publish.versions import newest_run
from flows.run.run_folder import verdicts_of_people
from flows.run.stage import rows_of

LONGEST_NAME, LONGEST_TEXT = 80, 4000


def _review(request: Request) -> Response:
    shown, run = curation_run(request)
    disputes = request.app.state.page.disputes(run)
    return show(
        request, "review.html", run=shown, tab="review", total=len(disputes), reviewers=run.recipe.labels.reviewers
    )


def _next(request: Request) -> Response:
    shown, run = curation_run(request)
    runs, wanted = _runs(request), request.query_params.get("problem")
    reviewer = _short(request.query_params.get("reviewer", ""), LONGEST_NAME)
    disputes, settled, judged = runs.disputes(run), verdicts_of_people(run), review.read_statements(run.folder)
    mine = {name for name in judged if any(verdict.reviewer == reviewer for verdict in judged[name])} & disputes.keys()
    done = settled.keys() | mine
    waiting = {name: dispute for name, dispute in disputes.items() if name not in done}
    progress = {"total": len(disputes), "settled": len(settled.keys() & disputes.keys()), "mine": len(mine)}
    skipped = request.query_params.get("skipped", "").split(",")
    chosen = runs.lease(run, waiting, request.state.session, wanted, skipped)
    if chosen is None:
        return show(request, "review_empty.html", run=shown, progress=progress, held=len(waiting))
    following = next((name for name in waiting if name not in (chosen, *skipped)), None)
    names = [name for name in (chosen, following) if name is not None]  # the next one is gathered ahead
    gathered, *_ = [runs.evidence(run, name, _gather) for name in names]
    dispute = waiting[chosen]
    return show(
        request,
        "review_item.html",
        run=shown,
        progress=progress,
        dispute=dispute,
        debated=[(evidence(row), row["transcript"]) for row in read_debates(run).get(chosen, ())],
        **gathered.result(),
    )


def _gather(folder: Path, problem: str) -> Gathered:
    run = newest_run(folder)
    rows = rows_of(filters_of(run)[0].folder_in(run), "kept", problem)
    return {"stages": attempts_at(run, problem), "row": rows.row(0, named=True) if rows.height else None}


async def _verdict(request: Request) -> Response:
    """Take a verdict on a disputed problem, or the reviewer's last one back."""
    try:
        message = json.loads(await request.body())
    except ValueError:
        return JSONResponse({"error": "this is no JSON."}, 400)
    if not isinstance(message, dict) or not isinstance(message.get("problem"), str):
        return JSONResponse({"error": "`problem` is missing."}, 400)
    try:
        await run_in_threadpool(_settle, request, message)
    except (StoreError, VerifierError) as error:  # a run works in the folder, or the verifier died: it may go later
        return JSONResponse({"error": str(error)}, 409)
    except GoldilocksError as error:
        return JSONResponse({"error": str(error).removeprefix("--answer ")}, 422)
    return JSONResponse({})


def _settle(request: Request, message: dict[str, Any]) -> None:
    _, run = curation_run(request)
    runs, problem, reviewer = _runs(request), message["problem"], _short(message.get("reviewer"), LONGEST_NAME)
    if problem not in runs.disputes(run):
        raise ConfigError(f"{problem[:40]!r} is none of the disputed problems; load the page again.")
    mine = [verdict for verdict in review.read_statements(run.folder).get(problem, ()) if verdict.reviewer == reviewer]
    if message.get("verdict") == review.UNDO:
        if mine:
            take_back(run, problem, reviewer)
        return
    verdict = _parse(message, reviewer)
    if not (mine and mine[-1] == verdict):
        with runs.judge(run) as judge:
            settle(run, verdict, judge if verdict.answer is not None else None)
    runs.lease(run, (), request.state.session)  # a second reviewer need not wait for its end


def _runs(request: Request) -> OpenRuns:
    runs: OpenRuns = request.app.state.page
    return runs


def _parse(table: dict[str, Any], reviewer: str) -> review.ReviewVerdict:
    if not reviewer:
        raise ConfigError("give your name before the first verdict.")
    note = _short(table.get("note"), LONGEST_TEXT)
    word, answer = table.get("verdict"), table.get("answer")
    if word == review.REJECT and answer is None:
        return review.ReviewVerdict(table["problem"], None, reviewer, note or None)
    if word == review.ACCEPT and isinstance(answer, str) and answer.strip() and len(answer) <= LONGEST_TEXT:
        return review.ReviewVerdict(table["problem"], answer.strip(), reviewer, note or None)
    raise ConfigError("a verdict is `reject`, or `accept` with an answer.")


def _short(text: object, longest: int) -> str:
    return " ".join(text.split())[:longest] if isinstance(text, str) else ""


ROUTES = [
    Route("/r/{run}/review", _review),
    Route("/r/{run}/review/next", _next),
    Route("/r/{run}/review/verdict", _verdict, methods=["POST"]),
]
