"""The judge as an HTTP service.

    GET  /health       {"status": "ok", "verifiers": {"math": "answers@…", "code": "programs-…"}, "problems": 351}
    POST /score        {"items": [{"record": {…}, "response": "…"}, {"id": "5f…", "response": "…"}]}
                       → {"scores": [{"reward": 1.0, "outcome": "correct", "answer": "42", "method": "number"}, …]}
    POST /get_reward   OpenRLHF: {"query": […], "prompts": […], "labels": […]}
                       → {"rewards": […], "scores": […], "extra_logs": {"excluded": […]}}

An unreadable item has the outcome ``refused``, an ``error`` and a null reward (OpenRLHF: 0).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import asdict
from reprlib import repr as brief
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from curation.records import SourceError, VerifierError
from curation.scoring.scorer import Scorer, score_of
from curation.scoring.trainers import without_end
from curation.server_guard import KeyGuard
from curation.verify.math_judge import Verdict

KEY = "GOLDILOCKS_REWARD_KEY"
"""Environment variable of the service's key."""

MAX_BODY = 1 << 28
"""Bytes of a request."""

MAX_BODIES = 1 << 30
"""Bytes of all requests being read."""


def reward_app(scorer: Scorer, records: Mapping[str, str] | None = None, key: str | None = None) -> KeyGuard:
    """Return the service as an ASGI application.

    Args:
        records: by problem id.
        key: as in `KeyGuard`.
    """
    service = _Service(scorer, records or {})
    routes = [
        Route("/health", service.health),
        Route("/score", service.score, methods=["POST"]),
        Route("/get_reward", service.openrlhf, methods=["POST"]),
    ]
    refusals: dict[Any, Any] = {HTTPException: _refusal, VerifierError: _failure, ClientDisconnect: _failure}
    return KeyGuard(Starlette(routes=routes, exception_handlers=refusals), key)


class _Service:
    def __init__(self, scorer: Scorer, records: Mapping[str, str]) -> None:
        self._scorer, self._records = scorer, records
        self._bytes_read = 0

    async def health(self, _request: Request) -> Response:
        return _answer({"status": "ok", "verifiers": self._scorer.versions, "problems": len(self._records)})

    async def score(self, request: Request) -> Response:
        return _answer({"scores": await self._scores(request, self._items)})

    async def openrlhf(self, request: Request) -> Response:
        scores = await self._scores(request, self._openrlhf_items)
        rewards = [score["reward"] or 0.0 for score in scores]
        excluded = [float(score["reward"] is None) for score in scores]
        return _answer({"rewards": rewards, "scores": rewards, "extra_logs": {"excluded": excluded}})

    async def _scores(self, request: Request, items_of: Callable[[dict[str, Any]], list[Any]]) -> list[dict[str, Any]]:
        body = await self._body(request)
        submitted = await run_in_threadpool(
            lambda: [self._submit(item, number) for number, item in enumerate(items_of(_table(body)))]
        )
        return [
            {"reward": None, "outcome": "refused", "answer": None, "method": "", "error": verdict}
            if isinstance(verdict, str)
            else asdict(score_of((verdict.result() if verdict.done() else await asyncio.wrap_future(verdict))[0]))
            for verdict in submitted
        ]

    async def _body(self, request: Request) -> bytes:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise HTTPException(415, "the content type must be application/json.")
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                self._bytes_read += len(chunk)
                if len(body) > MAX_BODY:
                    raise HTTPException(413, f"a request may have {MAX_BODY:,} bytes; send fewer items.")
                if self._bytes_read > MAX_BODIES:
                    raise HTTPException(503, "too many bytes at once; ask again.")
        finally:
            self._bytes_read -= len(body)
        return bytes(body)

    def _items(self, table: dict[str, Any]) -> list[Any]:
        items = table.get("items")
        if not isinstance(items, list):
            raise HTTPException(400, f"items is {brief(items)}; it must be a list of objects with `response`.")
        return items

    def _openrlhf_items(self, table: dict[str, Any]) -> list[Any]:
        queries, labels = table.get("query"), table.get("labels")
        prompts = table.get("prompts") or ([""] * len(queries) if isinstance(queries, list) else None)
        match queries, labels, prompts:
            case list(), list(), list() if len(queries) == len(labels) == len(prompts):
                return [self._openrlhf_item(*parts) for parts in zip(queries, labels, prompts, strict=True)]
        raise HTTPException(400, "query, prompts and labels must be three lists of one length.")

    def _openrlhf_item(self, query: Any, label: Any, prompt: Any) -> dict[str, Any]:
        is_text = isinstance(query, str) and isinstance(prompt, str)
        response = without_end(query.removeprefix(prompt)) if is_text else None
        return {"response": response, "id" if isinstance(label, str) and label in self._records else "record": label}

    def _submit(self, item: Any, number: int) -> Future[tuple[Verdict, ...]] | str:
        """Return an item's future verdict, or why it is refused."""
        try:
            if not isinstance(item, dict):
                raise SourceError(f"it is {brief(item)}; it must be an object.")
            record, response = self._record(item), item.get("response")
            if not isinstance(response, str):
                raise SourceError(f"response is {brief(response)}; it must be a text.")
            return self._scorer.submit(record, response)
        except SourceError as error:
            return f"item {number}: {error}"
        except RecursionError:
            return f"item {number}: its record is nested too deeply."

    def _record(self, item: Mapping[str, Any]) -> Any:
        if item.get("record") is not None:
            return item["record"]
        name = item.get("id")
        if not isinstance(name, str) or name not in self._records:
            raise SourceError(
                f"id is {brief(name)}, which is in no served set; give its `record`, or start the service with the set."
            )
        return self._records[name]


def _table(body: bytes) -> dict[str, Any]:
    try:
        table = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the request is no JSON ({error}).") from error
    if not isinstance(table, dict):
        raise HTTPException(400, f"the request is {brief(table)}; it must be an object.")
    return table


async def _refusal(request: Request, error: HTTPException) -> Response:
    known = f"there is no {request.url.path}; ask /health, /score or /get_reward."
    return _answer({"error": known if error.status_code == 404 else error.detail}, error.status_code)


async def _failure(_request: Request, error: Exception) -> Response:
    return _answer({"error": str(error)}, 503)


def _answer(table: Mapping[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(table), status, media_type="application/json")
