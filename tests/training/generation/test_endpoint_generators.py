"""Generation on servers: weights that change under requests, failures of every kind, and who may change weights."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import torch

from curation.config import EndpointModel, EngineSettings
from curation.policies.completions import TokenCompletion
from curation.policies.vllm.engine import DRAWING, engine_arguments
from curation.records import PolicyError
from curation.storage import scratch
from tests.curation.policies.tiny_llama import make_tiny_llama
from tests.patience import patient
from tests.server_process import ServerProcess
from tests.training.vllm_running import logprobs_by_version
from tests.vllm_servers import VllmServers
from tests.waiting import until
from training.embedded_model import WEIGHTS
from training.generation.checkpoint_tensors import read_tensors, tensor_shapes, write_weights
from training.generation.endpoint_generators import EndpointGenerator, RequestMeter, read_answer, weights_folder
from training.generation.serving import KEY, ServerGuard, arguments, main
from training.generation.weight_transfer import Way, weights_way
from training.optimisation.model import load_model, load_tokenizer, save_model

END = 2


def settings(*urls: str, model: str = "embedded", **more: Any) -> EndpointModel:
    return EndpointModel(kind="endpoint", model=model, revision="1", urls=urls, **more)


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "moved"
    model, chance = load_model(WEIGHTS), torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        parameter.data *= 1 + 0.1 * torch.randn(parameter.shape, generator=chance)
    save_model(model, load_tokenizer(WEIGHTS), folder)
    return folder


@pytest.mark.vllm
@pytest.mark.slow
@pytest.mark.parametrize("way", ["folder", "gloo"])
def test_weights_change_under_requests_and_every_token_knows_its_own(
    vllm_servers: VllmServers,
    moved: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    way: Way,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = [{"role": "user", "content": "What is 385 + 927?"}]
    chat = load_tokenizer(WEIGHTS).apply_chat_template(asked, add_generation_prompt=True, return_dict=True)
    prompt = list(chat["input_ids"])
    monkeypatch.setattr(scratch, "IN_MEMORY", tmp_path)
    generator = EndpointGenerator(WEIGHTS, settings(vllm_servers.one().url), way=way)

    async def work() -> None:
        state, first = load_model(moved).state_dict(), load_model(WEIGHTS).state_dict()
        async with generator:
            both: list[Any] = []
            for _ in range(3):  # as long as no update comes in the middle of one; 16 of 48 run at once
                made = [asyncio.create_task(generator.generate(prompt, seed=seed, max_tokens=99)) for seed in range(48)]
                await asyncio.wait(made, return_when=asyncio.FIRST_COMPLETED)  # the others are under way
                assert await generator.update_weights(state, 1) > 0
                whole = await asyncio.gather(*made)
                both = [one for one in whole if len(set(one.versions)) == 2]
                after = await generator.generate(prompt, seed=5, max_tokens=99)
                assert set(after.versions) == {1}
                await generator.update_weights(first, 2)
                back = await generator.generate(prompt, seed=5, max_tokens=99)
                assert set(back.versions) == {2}
                if both:
                    break
                await generator.update_weights(first, 0)
            assert both
            assert len(list(generator._shared.glob("v*"))) <= 3
            assert capsys.readouterr().err == ""  # by the way that was asked for
        for one in [*both[:4], after, back]:
            tokens, versions = list(one.token_ids), list(one.versions)
            wanted = logprobs_by_version(prompt, tokens, versions, [WEIGHTS, moved, WEIGHTS])
            assert max(abs(a - b) for a, b in zip(one.logprobs, wanted, strict=True)) < 1e-3
            assert (tokens[-1] == END) is (one.finish == "stop")
            assert one.text == load_tokenizer(WEIGHTS).decode(tokens, skip_special_tokens=True)

    asyncio.run(work())
    assert list(tmp_path.iterdir()) == []


def test_weights_that_a_killed_run_left_in_memory_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(scratch, "IN_MEMORY", tmp_path)
    left, held, new, others = (
        tmp_path / name for name in (*(f"goldilocks-vllm-weights-{kind}" for kind in ("left", "held", "new")), "others")
    )
    for folder in (left, held, new, others):
        (folder / "v00000001").mkdir(parents=True)
    for folder in (left, held, others):
        os.utime(folder, (1, 1))
    lock = os.open(held, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    scratch_folder = weights_folder()
    os.close(lock)
    made = Path(scratch_folder.path)
    assert {path for path in tmp_path.iterdir() if path.is_dir()} == {made, held, new, others}
    scratch_folder.remove()
    assert not made.exists()


@pytest.mark.vllm
@pytest.mark.slow
def test_weights_of_another_shape_are_refused_and_many_long_prompts_run_at_once(vllm_servers: VllmServers) -> None:
    generator = EndpointGenerator(WEIGHTS, settings(vllm_servers.one().url))

    async def work() -> None:
        async with generator:
            with pytest.raises(PolicyError, match="shape"):
                await generator.update_weights({"lm_head.weight": torch.zeros(2, 2)}, 1)
            with pytest.raises(PolicyError, match="context is 256"):
                await generator.generate([5] * 256, seed=1, max_tokens=5)
            # more than a server reads in one step; in pieces, requests with seeds were its death on a CPU
            prompts = [[1, *range(40 + number, 240 + number)] for number in range(48)]
            many = await asyncio.gather(*(generator.generate(one, seed=1, max_tokens=4) for one in prompts))
            assert all(set(made.versions) == {0} for made in many)

    asyncio.run(work())


HERE, THERE = ("http://127.0.0.1:8000", "http://localhost:8001/v1"), ("http://gpu-2:8000",)


@pytest.mark.parametrize(
    ("urls", "device", "vllm", "way"),
    [
        (HERE, "cpu", "0.32.0", "folder"),
        ((*HERE, *THERE), "cpu", "0.32.0", "gloo"),
        (HERE, "cuda:1", "0.32.0", "nccl"),
        (HERE, "cuda", None, "folder"),  # nothing here could join a group
        (HERE, "cuda", "0.32.0+cpu", "folder"),
        (THERE, "cuda", "0.32.0", "nccl"),
    ],
)
def test_the_way_follows_from_where_trainer_and_servers_are(
    urls: tuple[str, ...], device: str, vllm: str | None, way: str
) -> None:
    assert weights_way(urls, device, vllm) == way


TOP = [{"token_id": 7, "logprob": -0.5, "rank": 1}]
CHOICE: dict[str, Any] = {
    "index": 0,
    "finish_reason": "stop",
    "stop_reason": None,
    "token_ids": [7, 8],
    "routed_experts": None,
    "weight_versions": [{"version": "run-3", "start": 0, "end": 1}, {"version": "run-4", "start": 1, "end": 2}],
    "logprobs": {
        "content": [
            {"token_id": 7, "logprob": -0.5, "rank": 1, "top_logprobs": TOP},
            {"token_id": 8, "logprob": 0, "rank": None, "top_logprobs": []},
        ]
    },
}
"""As vLLM 0.32 writes one."""


def body(**changes: Any) -> bytes:
    return json.dumps({"request_id": "r", "choices": [{**CHOICE, **changes}]}).encode()


def test_tokens_log_probabilities_and_whose_weights_made_them() -> None:
    answer = read_answer(body())
    assert answer == ((7, 8), (-0.5, 0.0), [("run-3", 1), ("run-4", 1)], "stop")
    assert read_answer(body(token_ids=None, logprobs=None, weight_versions=[], finish_reason="abort"))[0] == ()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"choices": []}',
        b'{"error": {"message": "not now"}}',
        body(weight_versions=None),
        body(logprobs={"content": [{"token_id": 7}]}),
        body(logprobs={"content": [{"token_id": 7, "logprob": float("nan")}]}),
    ],
)
def test_what_holds_no_response_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whoever asks tells the answer itself
        read_answer(content)


def test_requests_count_while_they_decode(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(sys.modules[RequestMeter.__module__], "time", SimpleNamespace(perf_counter=lambda: now))
    meter = RequestMeter(slots=2)
    meter.change(running=3)  # the third waits for a slot
    for moment, seconds, change in (
        (10.0, 20.0, {"paused": 0.5}),  # one of two servers takes new weights
        (14.0, 24.0, {"paused": 0.5}),
        (15.0, 24.0, {"paused": -1.0, "running": -2}),
        (25.0, 34.0, {}),
    ):
        now = moment
        assert meter.change() == seconds
        meter.change(**change)


def test_tied_weights_are_written_once(tmp_path: Path) -> None:
    state = load_model(WEIGHTS).state_dict()
    write_weights(state, tmp_path / "w")
    back = dict(read_tensors(tmp_path / "w"))
    assert len(back) == len(state) - 1
    assert all(torch.equal(back[name], state[name]) for name in back)


def test_shapes_are_read_from_headers(tmp_path: Path) -> None:
    first, second = (make_tiny_llama(tmp_path / name, seed) for name, seed in (("first", 1), ("second", 2)))
    assert tensor_shapes(first)["lm_head.weight"] == (258, 64)
    assert tensor_shapes(first) == tensor_shapes(second)
    cut = shutil.copytree(first, tmp_path / "cut")
    (cut / "model.safetensors").write_bytes((cut / "model.safetensors").read_bytes()[:50])
    with pytest.raises(PolicyError, match=r"model\.safetensors is no whole safetensors file"):
        tensor_shapes(cut)
    (cut / "model.safetensors").unlink()
    (cut / "pytorch_model.bin").write_bytes(b"pickle")
    assert tensor_shapes(cut) == {}
    with pytest.raises(PolicyError, match=r"pytorch_model\.bin is no safetensors file"):
        next(read_tensors(cut))


STAND_IN = Path(__file__).with_name("vllm_stand_in.py")
STATE = dict(read_tensors(WEIGHTS))


Start = Callable[..., ServerProcess]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    patient(monkeypatch, retries=4)
    running: list[ServerProcess] = []

    def start(plan: str = "") -> ServerProcess:
        running.append(ServerProcess(STAND_IN, tmp_path / f"{len(running)}.jsonl", plan))
        return running[-1]

    yield start
    for server in running:
        server.stop()


def on(*servers: ServerProcess) -> EndpointGenerator:
    made = settings(*(server.url for server in servers), model="m", in_flight=4)
    return EndpointGenerator(WEIGHTS, made, lasting=True)


async def asked(generator: EndpointGenerator, seeds: range) -> list[TokenCompletion]:
    return await asyncio.gather(*(generator.generate((1, 2), seed=seed, max_tokens=9) for seed in seeds))


def salts(server: ServerProcess) -> list[str]:
    return [one["salt"].partition("-")[2] for one in server.events("asked")]


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
    assert salts(server) == ["0", "7"]


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
    assert salts(server) == ["0", "7"]


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


@pytest.mark.parametrize("plan", ["refuse", "forbid"])
def test_after_an_update_that_failed_no_token_of_mixed_weights_is_taken(start: Start, plan: str) -> None:
    server, other = start(), start("")

    async def work() -> None:
        async with on(server, other) as servers:
            server.stop()
            server.start(plan)  # at the same address, with weights of its own
            await servers.update_weights(STATE, 1)
            made = await asked(servers, range(8))
            assert {one.versions for one in made} == {(1, 1, 1)}
            assert "no such folder" in servers.servers.all[0].trouble

    asyncio.run(work())
    assert [one["new_version"].partition("-")[2] for one in server.events("update_weight_version")][:2] == ["mixed"] * 2
    assert len(server.events("pause")) == len(server.events("resume"))  # none stays paused


@pytest.mark.slow
def test_servers_that_were_started_in_another_way_are_refused(start: Start) -> None:
    gone = start()
    gone.stop()
    for server, said in (
        (start("old"), r"training\.generation\.serving"),
        (gone, "no server answers"),
        (start("refuse refuse"), "no such folder"),
    ):
        with pytest.raises(PolicyError, match=said):
            run(on(server))


async def weights(_scope: Any, _receive: Any, send: Any) -> None:
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
