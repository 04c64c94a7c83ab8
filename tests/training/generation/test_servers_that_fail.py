"""Generation on servers that refuse, hang, break connections, die and come back with other weights: real processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from curation.config import EndpointModel
from curation.policies.completions import TokenCompletion
from curation.records import PolicyError
from tests.patience import patient
from tests.server_process import ServerProcess
from tests.waiting import until
from training.embedded_model import WEIGHTS
from training.generation.checkpoint_tensors import read_tensors
from training.generation.endpoint_generators import EndpointGenerator

pytest.importorskip("httpx")
STAND_IN = Path(__file__).with_name("vllm_stand_in.py")
STATE = dict(read_tensors(WEIGHTS))


Start = Callable[..., ServerProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[ServerProcess] = []

    def start(plan: str = "") -> ServerProcess:
        running.append(ServerProcess(STAND_IN, tmp_path / f"{len(running)}.jsonl", plan))
        return running[-1]

    yield start
    for server in running:
        server.stop()


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    patient(monkeypatch, retries=4)


def on(*servers: ServerProcess) -> EndpointGenerator:
    urls = tuple(server.url for server in servers)
    return EndpointGenerator(
        WEIGHTS, EndpointModel(kind="endpoint", model="m", revision="1", urls=urls, in_flight=4), lasting=True
    )


async def asked(generator: EndpointGenerator, seeds: range) -> list[TokenCompletion]:
    return await asyncio.gather(*(generator.generate((1, 2), seed=seed, max_tokens=9) for seed in seeds))


def run(made: EndpointGenerator, count: int = 6) -> list[TokenCompletion]:
    async def work() -> list[TokenCompletion]:
        async with made:
            return await asked(made, range(count))

    return asyncio.run(work())


def test_every_token_has_its_version_and_a_server_the_weights_before_any_request(start: Start) -> None:
    server = start()

    async def work() -> None:
        async with on(server) as servers:
            assert servers.context == 100
            (first,) = await asked(servers, range(1))
            await servers.update_weights(STATE, 7)
            (second,) = await asked(servers, range(1))
        assert first == TokenCompletion((1, 2), (5, 6, 2), (-0.5,) * 3, (0,) * 3, first.text, "stop")
        assert second.versions == (7,) * 3

    asyncio.run(work())
    folders = [Path(one["update_info"]["folder"]).name for one in server.events("update_weights")]
    assert folders == ["v00000000", "v00000007"]
    assert len(server.events("pause")) == len(server.events("resume")) == 2
    salts = [one["salt"].partition("-")[2] for one in server.events("asked")]
    assert salts == ["0", "7"]


@pytest.mark.parametrize("word", ["429", "drop", "garbage", "abort", "foreign"])
def test_what_fails_for_now_is_asked_again_with_the_same_seed(start: Start, word: str) -> None:
    server, other = start(f"{word} {word}"), start(word)
    made = run(on(server, other))
    assert [one.token_ids[0] for one in made] == [5 + seed for seed in range(6)]
    seeds = sorted(one["seed"] for one in (*server.events("asked"), *other.events("asked")))
    assert len(seeds) == 6 + 3
    assert set(seeds) == set(range(6))


def test_what_is_asked_again_after_an_update_shares_no_cached_prompt_with_what_came_before(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient(monkeypatch, back_off_s=1.0)
    server = start("429")

    async def work() -> None:
        async with on(server) as servers:
            made = asyncio.create_task(servers.generate((1, 2), seed=0, max_tokens=9))
            while not server.events("asked"):
                await asyncio.sleep(0.01)
            await servers.update_weights(STATE, 7)
            assert set((await made).versions) == {7}

    asyncio.run(work())
    assert [one["salt"].partition("-")[2] for one in server.events("asked")] == ["0", "7"]


def test_a_server_that_dies_has_its_requests_moved_to_the_others(start: Start) -> None:
    dying, other = start("slow slow die"), start()
    generator = on(dying, other)
    made = run(generator, count=12)
    assert [one.token_ids[0] for one in made] == [5 + seed for seed in range(12)]
    assert [server.alive for server in generator.servers.all] == [False, True]
    lost = [one["seed"] for one in dying.events("asked")]
    assert len(lost) > 2
    assert len(other.events("asked")) >= 12 - len(lost) + 1


def test_a_server_that_comes_back_gets_the_newest_weights_before_a_request(start: Start) -> None:
    server, other = start(), start()

    async def work() -> None:
        async with on(server, other) as servers:
            await asked(servers, range(4))
            server.stop()
            await servers.update_weights(STATE, 1)  # it is away, and does not stop the others
            first = servers.servers.all[0]
            assert not first.alive
            server.start("")
            await until(lambda: first.alive)
            made = await asked(servers, range(8))
        assert {one.versions for one in made} == {(1, 1, 1)}

    asyncio.run(work())
    assert server.events("update_weights")[-1]["update_info"]["folder"].endswith("v00000001")


def test_after_an_update_that_failed_no_token_of_mixed_weights_is_taken(start: Start) -> None:
    server, other = start(), start("")

    async def work() -> None:
        async with on(server, other) as servers:
            server.stop()
            server.start("refuse")  # at the same address, with weights of its own
            await servers.update_weights(STATE, 1)
            made = await asked(servers, range(8))
            assert {one.versions for one in made} == {(1, 1, 1)}
            assert "no such folder" in servers.servers.all[0].trouble

    asyncio.run(work())
    assert [one["new_version"].partition("-")[2] for one in server.events("update_weight_version")][:2] == ["mixed"] * 2


@pytest.mark.slow
def test_servers_that_were_started_in_another_way_are_refused(start: Start) -> None:
    with pytest.raises(PolicyError, match=r"training\.generation\.serving"):
        run(on(start("old")))
    gone = start()
    gone.stop()
    with pytest.raises(PolicyError, match="no server answers"):
        run(on(gone))
    with pytest.raises(PolicyError, match="no such folder"):
        run(on(start("refuse refuse")))
