"""A vLLM server that takes weights asks for a key, or answers this machine alone."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from curation.config import EngineSettings
from curation.policies.vllm.engine import DRAWING, engine_arguments
from curation.records import PolicyError
from training.generation.serving import KEY, ServerGuard, arguments, main


async def weights(_scope: Any, _receive: Any, send: Any) -> None:
    """A server that changes its weights for all who reach it."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"changed"})


def status(path: str = "/update_weights", host: str = "127.0.0.1:8000", **headers: str) -> int:
    async def ask() -> int:
        transport = httpx.ASGITransport(ServerGuard(weights))
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            return (await client.post(path, headers={"Host": host, **headers})).status_code

    return asyncio.run(ask())


def test_with_a_key_nothing_but_health_is_answered_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "secret")
    for path in ("/update_weights", "/pause", "/collective_rpc", "/v1/models", "/inference/v1/generate", "/"):
        for given in ({}, {"Authorization": "Bearer guess"}, {"Authorization": "secret"}, {"Authorization": "Basic x"}):
            assert status(path, **given) == 401
        assert status(path, host="gpu-1:8000", Authorization="Bearer secret") == 200
    assert status("/health", host="gpu-1:8000") == 200


def test_without_a_key_only_this_machine_is_answered_and_no_web_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY, raising=False)
    assert status() == status(host="localhost:8000") == status(host="[::1]:8000") == 200
    for host in ("evil.example", "127.0.0.1.evil.example", "[", ""):
        assert status(host=host) == 403
    assert status(Origin="http://127.0.0.1:8000") == status(Origin="null") == 403


def test_a_server_has_the_guard_and_no_key_among_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    words = arguments("m", on_cpu=True)
    assert words[words.index("--middleware") + 1] == "training.generation.serving.ServerGuard"
    started: list[list[str]] = []
    monkeypatch.setattr("training.generation.serving.os.execv", lambda _path, words: started.append(words))
    monkeypatch.setenv(KEY, "")
    for given in (["--api-key", "secret"], ["--api-key=secret"], ["--api_key", "secret"]):
        main(["m", "--host", "0.0.0.0", *given, "--port", "8000"])
        assert "secret" not in " ".join(started[-1])
        assert started[-1][-4:] == ["--host", "0.0.0.0", "--port", "8000"]


@pytest.mark.parametrize("host", [["--host", "0.0.0.0"], ["--host=10.0.0.1"], ["--host", "127.0.0.1.x"]])
def test_without_a_key_it_listens_on_this_machine_alone(host: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY, raising=False)
    monkeypatch.setattr("training.generation.serving.os.execv", lambda *_: pytest.fail("it was started"))
    with pytest.raises(PolicyError, match="may change the weights; set VLLM_API_KEY"):
        main(["m", *host])


@pytest.mark.parametrize("name", list(DRAWING))
def test_a_server_draws_as_an_engine_does(name: str) -> None:
    words = arguments("m", on_cpu=True)
    assert words[words.index(f"--{name.replace('_', '-')}") + 1] == DRAWING[name]
    assert engine_arguments("m", 8, EngineSettings(), on_cpu=True)[name] == DRAWING[name]
