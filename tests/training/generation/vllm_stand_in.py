"""A small server with vLLM's routes for tokens and weights, run as a process of its own: it does what its plan says.

    python vllm_stand_in.py JOURNAL PLAN

The plan is a list of words, one a generation, then `ok` for ever: `ok`, `slow`, `429`, `drop`, `die`, `garbage`,
`abort`, `foreign` (tokens of unknown weights). `refuse` is an update that fails, `forbid` one with status 403, `old` a
server without weight updates. Each event is a line of the journal.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

JOURNAL, PLAN = sys.argv[1:3]
words = [word for word in PLAN.split() if word not in ("refuse", "forbid", "old")]

lock = threading.Lock()
state: dict[str, Any] = {
    "version": "default",
    "refusals": [word for word in PLAN.split() if word in ("refuse", "forbid")],
}


def note(event: str, **more: Any) -> None:
    with lock, open(JOURNAL, "a") as journal:
        journal.write(json.dumps({"event": event, **more}) + "\n")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        return

    def reply(self, status: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if status == 429:
            self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self.reply(200, {"data": [{"id": "m", "max_model_len": 100}]})
        elif "old" in PLAN.split():
            self.reply(404, {"detail": "Not Found"})
        else:
            self.reply(200, {"weight_version": state["version"]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/inference/v1/generate":
            self.generate(asked)
        else:
            self.exchange(self.path[1:].partition("?")[0], asked)

    def exchange(self, call: str, asked: dict[str, Any]) -> None:
        note(call, **asked)
        if call == "update_weights" and state["refusals"]:
            status = 500 if state["refusals"].pop(0) == "refuse" else 403
            self.reply(status, {"error": {"message": "no such folder"}})
            return
        if call == "update_weight_version":
            state["version"] = asked["new_version"]
        if call == "finish_weight_update":
            state["version"] = asked["weight_version"]
        self.reply(200, {})

    def generate(self, asked: dict[str, Any]) -> None:
        with lock:
            word = words.pop(0) if words else "ok"
        seed = asked["sampling_params"]["seed"]
        note("asked", seed=seed, salt=asked["cache_salt"])
        if word == "slow":
            time.sleep(0.3)
        if word == "drop":
            self.close_connection = True
        elif word == "die":
            os._exit(1)
        elif word.isdigit():
            self.reply(int(word), {"error": {"message": "not now"}})
        elif word == "garbage":
            self.reply(200, {"choices": []})
        else:
            self.reply(200, {"choices": [answer(seed, word)]})


def answer(seed: int, word: str) -> dict[str, Any]:
    tokens = [5 + seed, 6, 2]
    spans = [{"version": "default" if word == "foreign" else state["version"], "start": 0, "end": len(tokens)}]
    return {
        "token_ids": tokens,
        "finish_reason": "abort" if word == "abort" else "stop",
        "weight_versions": spans,
        "logprobs": {"content": [{"token_id": token, "logprob": -0.5} for token in tokens]},
    }


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


server = Server(("127.0.0.1", int(os.environ.get("PORT", "0"))), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
