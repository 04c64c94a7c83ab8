"""The reward service: verdicts by id and by record, one error per broken item, keys, and connections that hang."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import aiohttp
import httpx
import pytest

from curation import http_server
from curation.records import GoldilocksError
from curation.scoring import Scorer, ScoringSettings
from curation.scoring.service import reward_app
from tests.curation.scoring.test_trainers import math_record
from tests.curation.tables import check_refused
from tests.local_server import serving
from tests.waiting import wait_until

RIGHT = {"id": "m", "response": "\\boxed{42}"}


@pytest.fixture(scope="module")
def scorer() -> Iterator[Scorer]:
    with Scorer(ScoringSettings(workers=2)) as scorer:
        yield scorer


@pytest.fixture(scope="module")
def service(scorer: Scorer) -> Iterator[str]:
    with serving(reward_app(scorer, {"m": json.dumps(math_record())})) as address:
        yield address


def asked(address: str, body: Any, **headers: str) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    with urlopen(Request(address, data, {"Content-Type": "application/json", **headers})) as reply:
        return json.load(reply)


def status(address: str, body: Any, **headers: str) -> int:
    try:
        asked(address, body, **{name.replace("_", "-"): value for name, value in headers.items()})
    except HTTPError as error:
        return error.code
    return 200


def test_the_service_scores_by_id_and_by_record(service: str) -> None:
    items = [RIGHT, {"record": math_record("7"), "response": "\\boxed{42}"}]
    told = asked(f"{service}/score", {"items": items})["scores"]
    assert [(score["reward"], score["outcome"]) for score in told] == [(1.0, "correct"), (0.0, "wrong")]
    with urlopen(f"{service}/health") as reply:
        health = json.load(reply)
    assert (health["status"], health["problems"]) == ("ok", 1)


def test_openrlhf_asks_with_queries_that_hold_their_prompts(service: str) -> None:
    label = json.dumps(math_record())
    queries = ["What is 41 + 1, \\boxed{41}? \\boxed{42}", "Q: \\boxed{42} no"]
    told = asked(
        f"{service}/get_reward",
        {"query": queries, "prompts": ["What is 41 + 1, \\boxed{41}?", "Q: \\boxed{42}"], "labels": [label, "m"]},
    )
    assert told == {"rewards": [1.0, 0.0], "scores": [1.0, 0.0], "extra_logs": {"excluded": [0.0, 0.0]}}


@pytest.mark.parametrize(
    ("path", "body", "code", "words"),
    [
        ("/score", {}, 400, "items is None"),
        ("/score", b"{", 400, "the request is no JSON"),
        ("/score", b"\xff", 400, "the request is no JSON"),
        ("/score", b"[" * 100_000 + b"]" * 100_000, 400, "the request is no JSON"),
        ("/get_reward", {"query": ["a"], "labels": []}, 400, "three lists of one length"),
        ("/get_reward", {"query": 5, "labels": 5, "prompts": 5}, 400, "three lists of one length"),
        ("/reward", {}, 404, "there is no /reward"),
    ],
)
def test_a_request_that_cannot_be_read_is_one_sentence(
    path: str, body: Any, code: int, words: str, service: str
) -> None:
    with pytest.raises(HTTPError) as caught:
        asked(f"{service}{path}", body)
    assert caught.value.code == code
    assert words in json.load(caught.value)["error"]


def test_a_broken_item_leaves_the_others_their_rewards(service: str) -> None:
    def score(item: Any) -> None:
        scores = asked(f"{service}/score", {"items": [RIGHT, item, RIGHT]})["scores"]
        assert [score["reward"] for score in scores] == [1.0, None, 1.0]
        assert scores[1]["outcome"] == "refused"
        assert scores[1]["error"].startswith("item 1: ")
        raise ValueError(scores[1]["error"])

    check_refused("items refused", score, ValueError)
    with pytest.raises(ValueError, match="nested too deeply"):
        score({"record": "[" * 100_000, "response": "1"})
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    program = {"id": "c", "tests": [], "checker": deep}
    with pytest.raises(ValueError, match="problem c"):
        score({"record": {**math_record(), "id": "c", "domain": "code", "program": program}, "response": "1"})


def test_a_broken_item_of_openrlhf_is_excluded(service: str) -> None:
    label = json.dumps(math_record())
    body = {"query": ["\\boxed{42}", 5, "\\boxed{42}", "\\boxed{42}"], "labels": [label, label, {}, ["m"]]}
    told = asked(f"{service}/get_reward", body)
    assert (told["rewards"], told["extra_logs"]["excluded"]) == ([1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0])
    told = asked(f"{service}/get_reward", {**body, "prompts": [1, "", "", ""]})
    assert told["extra_logs"]["excluded"] == [1.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("text", ["\ud800 it is \\boxed{42}", "\\boxed{42\ud800}"])
def test_half_of_a_surrogate_pair_is_judged_as_it_would_be_stored(text: str, service: str) -> None:
    told = asked(f"{service}/score", {"items": [RIGHT, {"id": "m", "response": text}, RIGHT]})["scores"]
    assert [score["reward"] for score in told] == [1.0, 1.0, 1.0]
    record = math_record("\ud800")
    told = asked(f"{service}/score", {"items": [{"record": record, "response": "\\boxed{\\sqrt{2}}"}, RIGHT]})["scores"]
    assert told[1]["reward"] == 1.0
    assert told[0]["reward"] in (0.0, None)


def test_without_a_key_only_this_machine_and_no_web_page_may_ask(service: str) -> None:
    url, body = f"{service}/score", {"items": [RIGHT]}
    assert status(url, body) == status(url, body, Host="localhost:1") == status(url, body, Host="[::1]:1") == 200
    for host in ("evil.example", "127.0.0.1.evil.example", "[localhost]", "["):
        assert status(url, body, Host=host) == 403
    assert status(url, body, Origin=service) == status(url, body, Origin="null") == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert status(url, body, Content_Type=kind) == 415
    assert status(url, body, Content_Type="application/json; charset=utf-8") == 200


def test_a_key_is_a_bearer_token_or_the_password_of_the_address(scorer: Scorer) -> None:
    body = {"items": [{"record": math_record(), "response": "\\boxed{42}"}]}
    with serving(reward_app(scorer, key="sec:ret")) as address:
        url = f"{address}/score"
        assert status(url, body) == status(url, body, Authorization="Bearer guess") == 401
        assert status(url, body, Authorization="Basic x") == status(url, body, Authorization="sec:ret") == 401
        assert status(url, body, Authorization="Bearer sec:ret", Host="node-7:8765") == 200
        with_key = url.replace("http://", "http://goldilocks:sec%3Aret@")
        assert httpx.post(with_key, json=body).json()["scores"][0]["reward"] == 1.0

        async def as_openrlhf_asks() -> Any:
            async with aiohttp.ClientSession() as session, session.post(with_key, json=body) as reply:
                return await reply.json()

        assert asyncio.run(as_openrlhf_asks())["scores"][0]["reward"] == 1.0
        with urlopen(f"{address}/health") as reply:
            assert reply.status == 200


def test_a_request_of_too_many_bytes_is_refused(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curation.scoring.service.MAX_BODY", 1000)
    assert status(f"{service}/score", {"items": [RIGHT]}) == 200
    assert status(f"{service}/score", {"items": [{**RIGHT, "response": "x" * 1000}]}) == 413
    monkeypatch.setattr("curation.scoring.service.MAX_BODIES", 10)
    assert status(f"{service}/score", {"items": [RIGHT]}) == 503


def test_a_port_that_cannot_be_used_is_refused() -> None:
    with http_server.listen("127.0.0.1", 0) as taken:
        for port, reason in ((taken.getsockname()[1], "in use"), (70000, "0-65535")):
            with pytest.raises(
                GoldilocksError, match=f"{port} cannot be listened on .*{reason}.*; give another --port"
            ):
                http_server.listen("127.0.0.1", port)


HALVES = (
    b"",
    b"POST /score HT",
    b"POST /score HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{",
    b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nPOST /score HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
    b"application/json\r\nContent-Length: 9\r\n\r\n",
    b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n\r\n{",
)


def test_half_requests_hold_no_threads_and_are_ended(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REQUEST_S", 1.0)
    host, _, port = service.removeprefix("http://").partition(":")
    threads = threading.active_count()
    held = [socket.create_connection((host, int(port))) for _ in range(400)]
    try:
        for number, connection in enumerate(held):
            connection.sendall(HALVES[number % len(HALVES)])
            connection.setblocking(False)
        begun = time.monotonic()
        assert asked(f"{service}/score", {"items": [RIGHT]})["scores"][0]["reward"] == 1.0
        assert threading.active_count() <= threads + 8
        wait_until(lambda: all(map(_is_ended, held)), tick_s=0.2)
        assert time.monotonic() - begun < 30
        assert asked(f"{service}/score", {"items": [RIGHT]})["scores"][0]["reward"] == 1.0
    finally:
        for connection in held:
            connection.close()


def _is_ended(connection: socket.socket) -> bool:
    """Return whether the other side closed; a byte at a time keeps what is half sent from being idle."""
    try:
        connection.sendall(b"x")
        while connection.recv(1 << 16):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
