"""Several vLLM servers as one engine: with stand-ins for what may go wrong, and once with two real ones."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from curation.config import EngineSettings
from curation.policies import child_process
from curation.policies.servers import EVEN
from curation.policies.vllm import Vllm, replicas
from curation.policies.vllm.placement import gpu_shares, policy_gpus, visible_gpus, visible_names
from curation.policies.vllm.replicas import ReplicatedEngine
from curation.policies.vllm.server_processes import MOST_STARTS, Replica, server_options
from curation.policies.vllm.startup import Launch, engine_arguments
from curation.records import Completion, PolicyError
from tests.curation.policies.conftest import Running, asked, tiny_settings
from tests.waiting import until, wait_gone, wait_until

STAND_IN = Path(__file__).with_name("stand_in.py")
SAMPLING = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 8, "logprobs": False}


def stand_ins(folder: Path, *plans: str) -> Any:
    """The command of each stand-in by turns; the first port that is asked for gets the first plan, for ever."""
    by_port: dict[int, str] = {}

    def command(port: int) -> Sequence[str]:
        plan = by_port.setdefault(port, plans[len(by_port) % len(plans)])
        journal = folder / f"{len(by_port)}-{port}"
        return ["env", f"PORT={port}", sys.executable, str(STAND_IN), str(journal), "m", plan, ""]

    return command


@pytest.fixture
def engine_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Makes an engine of stand-ins; nothing of vLLM is imported."""
    config = SimpleNamespace(max_model_len=64, try_get_generation_config=dict)
    monkeypatch.setattr(replicas, "load_model_config", lambda *_: (config, None))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    launch = Launch("m", "m", in_flight=8)

    def engine(*plans: str, count: int = 2, command: Any = None) -> ReplicatedEngine:
        return ReplicatedEngine(launch, EngineSettings(), count, command=command or stand_ins(tmp_path, *plans))

    return engine


def draw(seed: int) -> dict[str, Any]:
    return ReplicatedEngine.sampling(**SAMPLING, seed=seed)


def test_the_machines_gpus_are_shared_out_among_neighbours() -> None:
    eight = [str(number) for number in range(8)]
    assert gpu_shares(eight, 8, 1) == [(name,) for name in eight]
    assert gpu_shares(eight, 2, 4) == [("0", "1", "2", "3"), ("4", "5", "6", "7")]
    assert gpu_shares(eight, 3, 2) == [("0", "1"), ("2", "3"), ("4", "5")]
    assert gpu_shares([], 2, 1) == [(), ()]
    with pytest.raises(PolicyError, match="5 engines of 2 GPUs each need 10 GPUs, and this machine has 8"):
        gpu_shares(eight, 5, 2)
    auto = [tiny_settings("m", data_parallel="auto", tensor_parallel=size) for size in (1, 2, 3, 8)]
    assert [settings.copies(8) for settings in auto] == [8, 4, 2, 1]
    assert [auto[0].copies(0), tiny_settings("m", data_parallel=3).copies(0)] == [1, 3]
    assert policy_gpus(tiny_settings("m"), 8) == 1
    assert policy_gpus(auto[2], 8) == 6
    assert policy_gpus(tiny_settings("m", data_parallel=3, tensor_parallel=2), 8) == 6


def test_gpus_that_are_hidden_from_the_run_are_nobodys() -> None:
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "4,GPU-ab, 6"}) == ("4", "GPU-ab", "6")
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": ""}) == ()
    assert visible_names("1,-1,2") == ("1",)


def test_a_policy_has_as_many_engines_as_it_says_or_as_there_are_gpus_for(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    engines = {replicas: Vllm(tiny_settings("first", replicas=replicas), models).engine for replicas in (1, 3, "auto")}
    assert not isinstance(engines[1], ReplicatedEngine)
    assert [getattr(engines[replicas], "count", 1) for replicas in (1, 3, "auto")] == [1, 3, 4]


def test_a_server_gets_the_arguments_of_an_engine() -> None:
    arguments = engine_arguments(Launch("m", "m", 8, seed=3), EngineSettings(tensor_parallel=2), on_cpu=True)
    words = server_options(arguments, 8123)
    assert words[:4] == ["--host", "127.0.0.1", "--port", "8123"]
    assert "--no-enable-chunked-prefill" in words
    assert "--enforce-eager" in words
    assert words[words.index("--tensor-parallel-size") + 1] == "2"
    assert words[words.index("--seed") + 1] == "3"
    assert "None" not in words
    assert "--data-parallel-size" not in words


def test_copies_inside_an_engine_are_vllms_own_and_share_its_gpus_and_seats(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = Launch("m", "m", 8, data_parallel=3)
    words = server_options(engine_arguments(launch, EngineSettings(), on_cpu=False), 8123)
    assert words[words.index("--data-parallel-size") + 1] == "3"
    assert words[words.index("--max-num-seqs") + 1] == "3"  # 8 requests on 3 copies
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7")
    engines = [
        Vllm(tiny_settings("first", replicas=replicas, data_parallel=4), models).engine for replicas in (1, "auto")
    ]
    assert [engine.count for engine in engines if isinstance(engine, ReplicatedEngine)] == [1, 2]
    assert tiny_settings("first", data_parallel=1).model_dump() == tiny_settings("first").model_dump()
    assert "data_parallel" not in tiny_settings("first").model_dump()


def test_what_a_dead_server_had_not_answered_is_asked_again_and_it_is_started_anew(
    engine_of: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """The first server dies at its tenth request, in every life; the second answers all."""

    async def run() -> tuple[list[str], int]:
        async with engine_of("ok " * 9 + "die", "ok") as engine:
            texts = await asyncio.gather(
                *(engine.generate([problem], draw(100 * problem + n), "x") for problem in range(12) for n in range(8))
            )
            assert engine.servers is not None
            mortal = engine.servers.replicas[0]
            await until(lambda: mortal.deaths and mortal.healthy)
            return [one.text for one in texts], mortal.deaths

    texts, deaths = asyncio.run(run())
    assert texts == [f"{100 * problem + n} {chr(problem)}" for problem in range(12) for n in range(8)]
    assert deaths >= 1
    assert "server 0 has ended with status 1" in capfd.readouterr().err


def test_eight_servers_have_all_that_a_policy_has_in_flight_and_each_its_part(engine_of: Any) -> None:
    """Sixteen attempts at each problem, none of which is answered: what lies where is what was routed."""
    seats, count = 8, 8

    async def run() -> list[int]:
        async with engine_of("hang " * 100, count=count) as engine:
            servers = engine.client.servers.all
            await until(lambda: all(server.alive for server in servers))
            asking = [
                asyncio.create_task(engine.generate([number // 16], draw(number), "x"))
                for number in range(seats * count)
            ]
            await until(lambda: sum(server.outstanding for server in servers) == seats * count)
            at_once = [server.outstanding for server in servers]
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
            return at_once

    at_once = asyncio.run(run())
    assert sum(at_once) == seats * count  # nothing waits for a server that is full while another has room
    assert max(at_once) <= math.ceil(EVEN * seats)
    assert min(at_once) >= seats / 2


def test_servers_that_cannot_start_end_the_run_with_their_own_words(engine_of: Any) -> None:
    def command(port: int) -> Sequence[str]:
        return [sys.executable, "-c", "raise ValueError('no such architecture')"]

    async def run() -> None:
        async with engine_of(command=command):
            pass

    with pytest.raises(PolicyError, match=r"cannot be kept running; .* last with: ValueError: no such architecture"):
        asyncio.run(run())


def test_when_no_server_can_be_started_again_whoever_waits_is_told(engine_of: Any, tmp_path: Path) -> None:
    """A server that lived once and then never starts again."""
    flag = tmp_path / "gone"

    def command(port: int) -> Sequence[str]:
        if flag.exists():
            return [sys.executable, "-c", "raise RuntimeError('CUDA error: the GPU has fallen off the bus')"]
        return stand_ins(tmp_path, "hang")(port)

    async def run() -> int:
        async with engine_of(count=1, command=command) as engine:
            asking = asyncio.create_task(engine.generate([1], draw(1), "x"))
            assert engine.servers is not None
            (replica,) = engine.servers.replicas
            await until(lambda: any(path.read_text() for path in tmp_path.iterdir()))
            flag.touch()
            kill_server(replica)
            with pytest.raises(PolicyError, match="the GPU has fallen off the bus"):
                await asking
            return int(replica.deaths)

    assert asyncio.run(run()) == 1 + MOST_STARTS


def kill_server(replica: Replica) -> None:
    """kill -9 for the server itself, below the process that watches over it."""
    assert replica.process is not None
    (server,) = psutil.Process(replica.process.pid).children()
    server.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("killed", ["the run", "the watching process"])
def test_a_server_ends_with_its_run_however_that_ends(killed: str, tmp_path: Path) -> None:
    """With all that it has started, of which one ignores SIGTERM."""
    grandchild = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"
    server = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {grandchild!r}]); time.sleep(1000)"
    if killed == "the watching process":
        server = "import time; time.sleep(1000)"  # the kernel ends the server alone
    command = [sys.executable, child_process.__file__, sys.executable, "-c", server]
    run_code = f"import subprocess, time; p = subprocess.Popen({command!r}, stdin=subprocess.PIPE); time.sleep(1000)"
    run = subprocess.Popen([sys.executable, "-c", run_code])
    try:
        top = psutil.Process(run.pid)
        expected = 2 if killed == "the watching process" else 3
        wait_until(lambda: len(top.children(recursive=True)) == expected, run)
        below = top.children(recursive=True)
        victim = run.pid if killed == "the run" else top.children()[0].pid
        os.kill(victim, signal.SIGKILL)
        wait_gone(below)
    finally:
        run.kill()
        run.wait()


@pytest.mark.vllm
@pytest.mark.slow
def test_two_real_servers_answer_as_one_engine_does_and_one_may_be_killed(
    models: Path, engine: Vllm, run: Running
) -> None:
    problems, attempts = 12, 4

    async def answers(policy: Vllm, kill: Any = None) -> dict[tuple[int, int], Completion]:
        done: dict[tuple[int, int], Completion] = {}

        async def ask(number: int, index: int) -> None:
            done[number, index] = await policy.answer(asked(number), index)
            if kill is not None and len(done) == problems:
                kill()

        await asyncio.gather(*(ask(number, index) for number in range(problems) for index in range(attempts)))
        return done

    async def of_two() -> dict[tuple[int, int], Completion]:
        policy = Vllm(tiny_settings("first", replicas=2), models)
        assert policy.key == engine.key
        assert policy.in_flight == 2 * engine.in_flight
        async with policy:
            assert isinstance(policy.engine, ReplicatedEngine)
            assert policy.engine.servers is not None
            servers = policy.engine.servers.replicas
            await until(lambda: all(server.healthy for server in servers), tick_s=0.2)
            done = await answers(policy, lambda: kill_server(servers[0]))
            await until(lambda: servers[0].deaths and servers[0].healthy, tick_s=0.2)
        return done

    one, two = run(answers(engine)), asyncio.run(of_two())
    assert one.keys() == two.keys()
    for name, alone in one.items():
        assert (two[name].text, two[name].token_ids, two[name].finish) == (alone.text, alone.token_ids, alone.finish)
        assert two[name].logprobs == pytest.approx(alone.logprobs, abs=1e-5)  # fp32: the company in a batch


@pytest.mark.vllm
@pytest.mark.slow
def test_one_real_server_with_two_copies_answers_as_one_engine_does(models: Path, engine: Vllm, run: Running) -> None:
    """vLLM's own data parallelism, on a CPU: two of its engine processes behind one address."""

    async def answers(policy: Vllm) -> list[Completion]:
        return list(await asyncio.gather(*(policy.answer(asked(number), 0) for number in range(12))))

    async def of_copies() -> list[Completion]:
        async with Vllm(tiny_settings("first", data_parallel=2), models) as policy:
            assert policy.key == engine.key
            assert isinstance(policy.engine, ReplicatedEngine)
            assert policy.engine.servers is not None
            (server,) = policy.engine.servers.replicas
            assert server.process is not None
            below = psutil.Process(server.process.pid).children(recursive=True)
            names = " ".join(word for process in below for word in process.cmdline())
            assert {f"VLLM::EngineCore_DP{number}" for number in (0, 1)} <= set(names.split())
            return await answers(policy)

    one, two = run(answers(engine)), asyncio.run(of_copies())
    assert [(each.text, each.token_ids, each.finish) for each in two] == [
        (each.text, each.token_ids, each.finish) for each in one
    ]
