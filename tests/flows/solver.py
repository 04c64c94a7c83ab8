"""A small OpenAI-compatible server that solves sums as often as its ability and their difficulty say, by the seed."""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
import tomllib
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from statistics import NormalDist

import tomli_w

from curation.config.loading import set_value
from tests.flows.conftest import write_jsonl
from tests.local_server import LocalServer, send_json

SPREAD = 2.5
SUMS = Path(__file__).with_name("sums.toml").read_text(encoding="utf-8")


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
    difficulty = SPREAD * NormalDist().inv_cdf(uniform("difficulty", number))
    return 1 / (1 + math.exp(difficulty - ability))


class Solver(LocalServer):
    """The server; ``requests`` counts attempts, ``starts`` how often a client greeted it."""

    def __init__(self, ability: float, sign: float = 1.0) -> None:
        super().__init__()
        self.ability, self.sign, self.requests, self.starts = ability, sign, 0, 0
        self.lock = threading.Lock()
        self.url = f"{self.address}/v1"

    def solve(self, prompt: str, seed: int) -> str:
        found = re.search(r"What is (\d+) \+ \d+\?", prompt)
        assert found is not None
        number = (int(found[1]) - 1000) // 7
        rate = pass_rate(number, self.ability)
        rate = rate if self.sign > 0 else 1 - rate
        is_right = uniform("attempt", number, seed) < rate
        return f"\\boxed{{{answer(number) if is_right else 10**6 + seed % 10**6}}}"

    def table(self, model: str) -> str:
        return (
            f'kind = "endpoint"\nmodel = "{model}"\nrevision = "1"\nurls = ["{self.url}"]\nprompt = "plain"\n'
            "prices = [0, 1]\n"
        )

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        with self.lock:
            self.starts += not body
            self.requests += bool(body)
        if not body:
            return send_json(request, {"data": [{"id": name} for name in ("weak", "strong", "other")]})
        asked = json.loads(body)
        text = self.solve(asked["messages"][-1]["content"], asked["seed"])
        choice = {"finish_reason": "stop", "index": 0, "message": {"role": "assistant", "content": text}}
        return send_json(request, {"choices": [choice], "usage": {"completion_tokens": 10, "prompt_tokens": 8}})
