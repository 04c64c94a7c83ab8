"""The judge as a small HTTP service that any trainer can ask, batched, with workers and the sandbox behind it.

    GET  /health       {"status": "ok", "verifiers": {"math": "answers@…", "code": "programs-…"}, "problems": 351}
    POST /score        {"items": [{"record": {…}, "response": "…"}, {"id": "5f…", "response": "…"}]}
                       → {"scores": [{"reward": 1.0, "outcome": "correct", "answer": "42", "method": "number"}, …]}
    POST /get_reward   OpenRLHF's remote reward model: {"query": […], "prompts": […], "labels": […]}
                       → {"rewards": […], "scores": […], "extra_logs": {"excluded": […]}}

An item names its problem by the record of an exported row, or by its id in a set that the service was started with. A
reward is null where the verifier failed; OpenRLHF knows no such thing, and gets 0 and a mark in ``extra_logs``. A
request that cannot be meant is answered with 400 and a sentence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from curation.records import SourceError, VerifierError
from curation.scoring.scorer import Scorer
from curation.scoring.trainers import without_end

MOST_BYTES = 1 << 30
"""Of one request."""


class RewardServer(ThreadingHTTPServer):
    """The service. ``records`` are those of the sets that it knows, by their problems' ids."""

    daemon_threads = True
    request_queue_size = 1024  # trainers ask for a whole batch at once

    def __init__(self, host: str, port: int, scorer: Scorer, records: Mapping[str, str] | None = None) -> None:
        self.scorer, self.records = scorer, dict(records or {})
        super().__init__((host, port), _Handler)

    @property
    def address(self) -> str:
        """Return the address that trainers ask."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}"

    def health(self) -> dict[str, Any]:
        """Return what the service is."""
        return {"status": "ok", "verifiers": self.scorer.versions, "problems": len(self.records)}

    def score(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the scores of the items of a request.

        Raises:
            SourceError: the request cannot be meant.
        """
        items = asked.get("items")
        if not isinstance(items, list):
            raise SourceError(f"items is {items!r:.60}; it must be a list of objects with `response`.")
        pairs = [(self._record(item, number), self._response(item, number)) for number, item in enumerate(items)]
        return {"scores": [asdict(score) for score in self.scorer.score(pairs)]}

    def openrlhf(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the rewards of a request of OpenRLHF, whose labels are records or ids, and whose queries hold prompts.

        Raises:
            SourceError: the request cannot be meant.
        """
        queries, labels = asked.get("query"), asked.get("labels")
        prompts = asked.get("prompts") or [""] * len(queries or ())
        if not (isinstance(queries, list) and isinstance(labels, list) and len(queries) == len(labels) == len(prompts)):
            raise SourceError("query, prompts and labels must be three lists of one length.")
        items = [
            {"response": without_end(query.removeprefix(prompt)), "id" if label in self.records else "record": label}
            for query, prompt, label in zip(queries, prompts, labels, strict=True)
        ]
        scores: list[dict[str, Any]] = self.score({"items": items})["scores"]
        rewards = [score["reward"] or 0.0 for score in scores]
        excluded = [float(score["reward"] is None) for score in scores]
        return {"rewards": rewards, "scores": rewards, "extra_logs": {"excluded": excluded}}

    def _record(self, item: Any, number: int) -> Any:
        if not isinstance(item, dict):
            raise SourceError(f"item {number} is {item!r:.60}; it must be an object.")
        if item.get("record") is not None:
            return item["record"]
        if item.get("id") not in self.records:
            raise SourceError(
                f"item {number}: id is {item.get('id')!r}, which is in no set that is served; give its `record`, or "
                "start the service with the set."
            )
        return self.records[item["id"]]

    @staticmethod
    def _response(item: Mapping[str, Any], number: int) -> str:
        if not isinstance(item.get("response"), str):
            raise SourceError(f"item {number}: response is {item.get('response')!r:.60}; it must be a text.")
        return str(item["response"])


class _Handler(BaseHTTPRequestHandler):
    server: RewardServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/health":
            return self._answer(200, self.server.health())
        return self._answer(404, {"error": f"there is no {self.path}; ask /health, /score or /get_reward."})

    def do_POST(self) -> None:
        work = {"/score": self.server.score, "/get_reward": self.server.openrlhf}.get(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        if work is None or length > MOST_BYTES:
            self.close_connection = True
            sentence = f"there is no {self.path}; ask /score or /get_reward." if work is None else "too many bytes."
            return self._answer(404 if work is None else 413, {"error": sentence})
        try:
            asked = json.loads(self.rfile.read(length))
            if not isinstance(asked, dict):
                raise SourceError(f"the request is {asked!r:.60}; it must be an object.")
            return self._answer(200, work(asked))
        except (SourceError, ValueError) as error:
            return self._answer(400, {"error": str(error)})
        except VerifierError as error:
            return self._answer(503, {"error": str(error)})

    def _answer(self, status: int, table: Mapping[str, Any]) -> None:
        body = json.dumps(table, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of requests."""
