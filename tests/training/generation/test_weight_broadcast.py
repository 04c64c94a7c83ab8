"""Weights broadcast to servers: both ends for real, by gloo, with a double of vLLM's calls between them."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from curation.policies.servers import TemporaryFailure
from training.embedded_model import WEIGHTS
from training.generation.checkpoint_tensors import WeightVersion, read_tensors
from training.generation.weight_broadcast import WeightBroadcast
from training.generation.weight_transfer import Group, open_group

needs_vllm = pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed")
pytestmark = [pytest.mark.vllm, pytest.mark.slow, needs_vllm]


class Server:
    """A server with two workers, each a thread, which keep what they are sent; it fails when its plan orders it."""

    def __init__(self, plan: str = "") -> None:
        self.plan = plan.split()
        self.calls: list[str] = []
        self.groups: list[Group] = []
        self.taken: list[dict[str, torch.Tensor]] = []

    async def command(self, path: str, body: Mapping[str, Any]) -> None:
        self.calls.append(path)
        word = self.plan.pop(0) if self.plan else "ok"
        if word == "refuse":
            raise TemporaryFailure(f"/{path}: 500 no NCCL here")
        if path == "init_weight_transfer_engine":
            info = body["init_info"]
            assert info["backend"] == "gloo"
            where = ("gloo", info["address"], info["port"])
            self.groups = await self._all(lambda rank: open_group(*where, rank + 1, info["world_size"], None))
        elif word == "break":
            for group in self.groups:
                group.close()
            raise TemporaryFailure("/update_weights: 500 out of memory")
        else:
            self.taken = await self._all(lambda rank: _received(self.groups[rank], body["update_info"]))

    async def _all(self, work: Callable[[int], Any]) -> list[Any]:
        with ThreadPoolExecutor(2) as threads:
            return await asyncio.gather(*(asyncio.wrap_future(threads.submit(work, rank)) for rank in range(2)))


def _received(group: Group, info: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    taken = {}
    for name, dtype, shape in zip(info["names"], info["dtypes"], info["shapes"], strict=True):
        taken[name] = torch.empty(shape, dtype=getattr(torch, dtype))
        group.broadcast(taken[name])
    return taken


def inside(servers: Mapping[str, Server], work: Callable[[WeightBroadcast], Awaitable[None]]) -> None:
    async def workers(_: str) -> int:
        return 2

    async def command(url: str, path: str, body: Mapping[str, Any]) -> None:
        await servers[url].command(path, body)

    async def run() -> None:
        broadcast = WeightBroadcast("gloo", "127.0.0.1", torch.device("cpu"), workers, command)
        try:
            await work(broadcast)
        finally:
            broadcast.close()

    asyncio.run(run())


@pytest.mark.slow
def test_every_worker_of_every_server_gets_every_tensor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = {name: value.to(torch.bfloat16) for name, value in read_tensors(WEIGHTS)}
    servers = {"http://a": Server(), "http://b": Server()}

    async def work(broadcast: WeightBroadcast) -> None:
        for url in servers:
            assert await broadcast.join(url)
        for weights in (WeightVersion(WEIGHTS, None, 0, tmp_path), WeightVersion(WEIGHTS, state, 1, tmp_path)):
            await asyncio.gather(*(broadcast.send(url, weights) for url in servers))
            for taken in (one for server in servers.values() for one in server.taken):
                assert taken.keys() == dict(weights.tensors()).keys()
                assert all(taken[name].equal(value) for name, value in weights.tensors())

    inside(servers, work)
    assert capsys.readouterr().err == ""
    assert servers["http://a"].calls.count("init_weight_transfer_engine") == 1  # the group stays
    assert list(tmp_path.iterdir()) == []  # nothing was written


def test_a_server_that_cannot_join_gets_folders_and_one_line_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = {"http://a": Server("refuse"), "http://b": Server()}

    async def work(broadcast: WeightBroadcast) -> None:
        for _ in range(2):
            assert not await broadcast.join("http://a")
        assert await broadcast.join("http://b")
        weights = WeightVersion(WEIGHTS, None, 3, tmp_path)
        await broadcast.send("http://b", weights)
        assert weights.folder() == weights.folder() == tmp_path / "v00000003"

    inside(servers, work)
    assert capsys.readouterr().err.splitlines() == [
        "http://a: new weights come as folders, not by gloo (/init_weight_transfer_engine: 500 no NCCL here)"
    ]
    assert servers["http://a"].calls == ["init_weight_transfer_engine"]
    assert [path.name for path in (tmp_path / "v00000003").iterdir()] == ["model.safetensors"]


def test_a_server_whose_group_breaks_joins_once_more_and_then_gets_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers, weights = {"http://a": Server("ok break ok break")}, WeightVersion(WEIGHTS, None, 0, tmp_path)

    async def work(broadcast: WeightBroadcast) -> None:
        for _ in range(2):
            assert capsys.readouterr().err == ""
            assert await broadcast.join("http://a")
            with pytest.raises(TemporaryFailure, match="gloo: "):
                await broadcast.send("http://a", weights)
        assert not await broadcast.join("http://a")

    inside(servers, work)
    said = capsys.readouterr().err.splitlines()
    assert said == ["http://a: new weights come as folders from now on (gloo broke 2 times)"]
