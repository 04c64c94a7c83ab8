"""A small OpenAI-compatible server that solves sums as often as its ability and their difficulty say, by the seed."""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
import tomllib
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import NormalDist
from types import TracebackType
from typing import Any

import tomli_w

from curation.config.loading import set_value
from tests.flows.conftest import write_jsonl

SPREAD = 2.5
SUMS = """
name = "sums"
shard_rows = 50
workers = 1
near_dedup = { enabled = false } # sums are alike

[[sources]]
name = "sums"
kind = "jsonl"
path = "sums.jsonl"
license = "MIT"
columns = { statement = "question", answer = "final", meta = ["rate"] }
"""


def write_recipe(home: Path, count: int, models: Sequence[str], *changes: str) -> Path:
    """Write sums, and a recipe whose stages ask models with these tables, the first of them `student`."""
    rows = [
        {"question": statement(number), "final": str(answer(number)), "rate": round(pass_rate(number, 0.0), 3)}
        for number in range(count)
    ]
    write_jsonl(home / "sums.jsonl", rows)
    table = tomllib.loads(SUMS)
    for part, name, model in zip(("stage1", "stage2"), ("student", "teacher"), models, strict=False):
        table[part] = {"model": name}
        table.setdefault("models", {})[name] = tomllib.loads(model)
    for change in changes:
        set_value(table, change)
    path = home / "sums.toml"
    path.write_text(tomli_w.dumps(table))
    return path


def uniform(*parts: object) -> float:
    """A number from 0 to 1 by hash, never either of them."""
    text = " ".join(map(str, parts))
    return (int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest()) + 0.5) / 2**48


def statement(number: int) -> str:
    return f"What is {1000 + 7 * number} + {13 * number + 5}?"


def answer(number: int) -> int:
    return 1005 + 20 * number


def pass_rate(number: int, ability: float) -> float:
    """The share of correct attempts of a policy at a sum, by its difficulty."""
    difficulty = SPREAD * NormalDist().inv_cdf(uniform("difficulty", number))
    return 1 / (1 + math.exp(difficulty - ability))


class Solver(ThreadingHTTPServer):
    """The server; ``requests`` counts attempts, ``starts`` how often a client greeted it."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, ability: float, sign: float = 1.0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.ability, self.sign, self.requests, self.starts = ability, sign, 0, 0
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)

    def __enter__(self) -> Solver:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()

    def solve(self, prompt: str, seed: int) -> str:
        found = re.search(r"What is (\d+) \+ \d+\?", prompt)
        assert found is not None
        number = (int(found[1]) - 1000) // 7
        rate = pass_rate(number, self.ability)
        rate = rate if self.sign > 0 else 1 - rate
        is_right = uniform("attempt", number, seed) < rate
        return f"\\boxed{{{answer(number) if is_right else 10**6 + seed % 10**6}}}"

    def table(self, model: str) -> str:
        """A policy's settings as TOML lines."""
        return (
            f'kind = "endpoint"\nmodel = "{model}"\nrevision = "1"\nurls = ["{self.url}"]\nprompt = "plain"\n'
            "prices = [0, 1]\n"
        )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet
    disable_nagle_algorithm = True
    server: Solver

    def log_message(self, *_: Any) -> None:
        return

    def _reply(self, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        with self.server.lock:
            self.server.starts += 1
        self._reply({"data": [{"id": name} for name in ("weak", "strong", "other")]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests += 1
        text = self.server.solve(asked["messages"][-1]["content"], asked["seed"])
        choice = {"finish_reason": "stop", "index": 0, "message": {"role": "assistant", "content": text}}
        self._reply({"choices": [choice], "usage": {"completion_tokens": 10, "prompt_tokens": 8}})
