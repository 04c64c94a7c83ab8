"""The tab of the review: disputed labels one at a time.

Invariant: a message is checked and written to disk before it is answered; a repeated verdict is written once.
"""

from __future__ import annotations

import json
from concurrent.futures import Future
from functools import partial
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from curation.publish import review
from curation.questions.debates import evidence
from curation.records import ConfigError, GoldilocksError, StoreError, VerifierError
from flows.page.attempts import attempts_at
from flows.page.dispute_queue import Dispute, waiting_for
from flows.page.marking import deciding_words
from flows.page.open_runs import OpenRuns, curation_run
from flows.page.problem_page import source_row
from flows.page.rendering import show
from flows.publish.debates import read_debates
from flows.publish.disputes import settle, take_back
from flows.run.run_folder import Run

LONGEST_NAME, LONGEST_TEXT = 80, 4000


def _review(request: Request) -> Response:
    shown, run = curation_run(request)
    disputes = request.app.state.page.runs.disputes(run)
    return show(
        request, "review.html", run=shown, tab="review", total=len(disputes), reviewers=run.recipe.labels.reviewers
    )


def _next(request: Request) -> Response:
    shown, run = curation_run(request)
    reviewer, wanted = (
        _short(request.query_params.get("reviewer", ""), LONGEST_NAME),
        request.query_params.get("problem"),
    )
    runs = request.app.state.page.runs
    disputes = runs.disputes(run)
    waiting, progress = waiting_for(run, disputes, reviewer)
    by_name = {dispute.problem: dispute for dispute in waiting}
    chosen = runs.leases[run.folder].take(list(by_name), request.state.session, wanted)
    if chosen is None:
        return show(request, "review_empty.html", run=shown, progress=progress, held=len(waiting))
    gathered = _gathered(runs, run, by_name[chosen])
    following = next((dispute for dispute in waiting if dispute.problem != chosen), None)
    if following is not None:
        _gathered(runs, run, following)
    debated = [(evidence(row), row["transcript"]) for row in read_debates(run).get(chosen, ())]
    dispute = by_name[chosen]
    return show(
        request,
        "review_item.html",
        run=shown,
        progress=progress,
        dispute=dispute,
        marked=[word for _, text in dispute.reasons for word in deciding_words(text, dispute.statement)],
        debated=debated,
        **gathered.result(),
    )


def _gathered(runs: OpenRuns, run: Run, dispute: Dispute) -> Future[dict[str, Any]]:
    return runs.evidence(run, dispute.problem, partial(_evidence, run, dispute.problem))


def _evidence(run: Run, problem: str) -> dict[str, Any]:
    return {"stages": attempts_at(run, problem), "row": source_row(run, problem)}


async def _verdict(request: Request) -> Response:
    return await _posted(request, _write_verdict)


async def _undo(request: Request) -> Response:
    return await _posted(request, _write_undo)


async def _hold(request: Request) -> Response:
    return await _posted(request, _renew)


async def _skip(request: Request) -> Response:
    return await _posted(request, _write_skip)


async def _posted(request: Request, work: Any) -> Response:
    try:
        table = json.loads(await request.body())
    except ValueError:
        return JSONResponse({"error": "this is no JSON."}, 400)
    if not isinstance(table, dict) or not isinstance(table.get("problem"), str):
        return JSONResponse({"error": "`problem` is missing."}, 400)
    try:
        return JSONResponse(await run_in_threadpool(work, request, table))
    except ConfigError as error:
        return JSONResponse({"error": str(error).removeprefix("--answer ")}, 422)
    except (StoreError, VerifierError) as error:  # a run works in the folder, or the verifier died: it may go later
        return JSONResponse({"error": str(error)}, 409)
    except GoldilocksError as error:
        return JSONResponse({"error": str(error)}, 422)


def _write_verdict(request: Request, table: dict[str, Any]) -> dict[str, Any]:
    _, run = curation_run(request)
    verdict = _parse(table)
    _known(request, run, verdict.problem)
    said = review.read_statements(run.folder).get(verdict.problem, [])
    mine = [other for other in said if other.reviewer == verdict.reviewer]
    if not (mine and mine[-1] == verdict):
        with request.app.state.page.runs.judge(run) as judge:
            settle(run, verdict, judge if verdict.answer is not None else None)
    request.app.state.page.runs.leases[run.folder].release(request.state.session)
    return {}


def _write_undo(request: Request, table: dict[str, Any]) -> dict[str, Any]:
    _, run = curation_run(request)
    reviewer = _short(table.get("reviewer"), LONGEST_NAME)
    _known(request, run, table["problem"])
    said = review.read_statements(run.folder).get(table["problem"], [])
    if any(verdict.reviewer == reviewer for verdict in said):
        take_back(run, table["problem"], reviewer)
    return {}


def _renew(request: Request, table: dict[str, Any]) -> dict[str, Any]:
    _, run = curation_run(request)
    _known(request, run, table["problem"])
    return {"held": request.app.state.page.runs.leases[run.folder].renew(table["problem"], request.state.session)}


def _write_skip(request: Request, table: dict[str, Any]) -> dict[str, Any]:
    _, run = curation_run(request)
    _known(request, run, table["problem"])
    request.app.state.page.runs.leases[run.folder].skip(table["problem"], request.state.session)
    return {}


def _known(request: Request, run: Run, problem: str) -> None:
    if all(dispute.problem != problem for dispute in request.app.state.page.runs.disputes(run)):
        raise ConfigError(f"{problem[:40]!r} is none of the disputed problems; load the page again.")


def _parse(table: dict[str, Any]) -> review.ReviewVerdict:
    reviewer, note = _short(table.get("reviewer"), LONGEST_NAME), _short(table.get("note"), LONGEST_TEXT)
    if not reviewer:
        raise ConfigError("who are you? Give a name before the first verdict.")
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
    Route("/r/{run}/review/undo", _undo, methods=["POST"]),
    Route("/r/{run}/review/hold", _hold, methods=["POST"]),
    Route("/r/{run}/review/skip", _skip, methods=["POST"]),
]
