"""The vLLM policy, with the real engine and a tiny model; transformers is the judge of its numbers."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from curation.config import Decoding
from curation.policies.completions import TokenCompletion
from curation.policies.vllm import Vllm
from curation.records import Completion, PolicyError, RequestRefused
from tests.curation.policies.conftest import Running, asked, tiny_settings
from tests.places import in_gate
from tests.waiting import until, wait_gone

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


def answer(engine: Vllm, run: Running, number: int = 0, index: int = 0) -> Completion:
    answered = run(engine.answer(asked(number), index))
    assert answered is not None
    return answered


async def drawn_tokens(engine: Vllm, number: int = 0, index: int = 0) -> TokenCompletion:
    """The tokens of an attempt, with the log-probabilities that training asks for."""
    sampling, ids = engine._sampling(asked(number).id, index), engine._tokens(asked(number))
    sampling.logprobs = 0
    async for output in engine._engine.generate({"type": "token", "prompt_token_ids": ids}, sampling, "drawn"):
        made = output.outputs[0]
    logprobs = [float(at[token].logprob) for token, at in zip(made.token_ids, made.logprobs, strict=True)]
    return TokenCompletion(tuple(ids), tuple(made.token_ids), tuple(logprobs), (), made.text, made.finish_reason)


def expected_logprobs(model: Path, prompt: list[int], made: TokenCompletion, decoding: Decoding) -> list[float]:
    """What transformers computes for the tokens that were drawn: temperature first, then top-p, in fp32."""
    import torch
    from transformers import AutoModelForCausalLM

    llama = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    with torch.no_grad():
        logits = llama(torch.tensor([[*prompt, *made.token_ids]])).logits[0, len(prompt) - 1 : -1]
    logits = logits / decoding.temperature
    ranked, order = logits.sort(descending=True)
    before = ranked.softmax(-1).cumsum(-1) - ranked.softmax(-1)
    ranked = ranked.masked_fill(before >= decoding.top_p, -torch.inf)
    logprobs = torch.empty_like(logits).scatter(1, order, ranked).log_softmax(-1)
    return [float(row[token]) for row, token in zip(logprobs, made.token_ids, strict=True)]


def test_logprobs_are_those_of_the_distribution_drawn_from(engine: Vllm, run: Running, models: Path) -> None:
    assert engine._tokenizer.decode(engine._tokens(asked())) == "<|user|>\nWhat is 2 + 2?\n<|assistant|>\n"
    for index in range(3):
        made = run(drawn_tokens(engine, index=index))
        expected = expected_logprobs(models / "first", list(made.prompt_ids), made, engine.settings.decoding)
        assert made.logprobs == pytest.approx(expected, abs=1e-3)
        assert answer(engine, run, index=index).tokens == len(made.token_ids)


def test_cancelling_aborts_in_the_engine(engine: Vllm, run: Running) -> None:
    async def cancelled() -> int:
        tasks = [asyncio.create_task(engine.answer(asked(n), 0)) for n in range(8)]
        await until(lambda: engine._engine.output_processor.get_num_unfinished_requests() >= 8, tick_s=0)
        for task in tasks:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in done)
        return int(engine._engine.output_processor.get_num_unfinished_requests())

    assert run(cancelled()) == 0
    assert answer(engine, run).finish is not None  # and the engine goes on


def test_a_prompt_without_room_gets_no_attempt(engine: Vllm, run: Running) -> None:
    with pytest.raises(RequestRefused, match="leaves no room") as refused:
        run(engine.answer(asked(statement="x" * 1000), 0))
    assert refused.value.kind == "too_long"


@pytest.mark.parametrize(
    ("model", "said"),
    [("absent", "give its `revision`"), (".", "holds no weights"), ("broken", "vLLM cannot start with it")],
)
def test_what_cannot_be_loaded_is_one_sentence(models: Path, tmp_path: Path, model: str, said: str) -> None:
    pytest.importorskip("vllm")
    shutil.copytree(models / "first", tmp_path / "broken")
    (tmp_path / "broken" / "config.json").write_text('{"model_type": "abacus"}')

    async def enter() -> None:
        async with Vllm(tiny_settings(model), tmp_path):
            pass

    with pytest.raises(PolicyError) as caught:
        asyncio.run(enter())
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_vllm_it_is_said_what_to_install(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curation.policies.vllm.engine.vllm_version", lambda: None)
    with pytest.raises(PolicyError, match=r"vLLM is not installed: pip install 'goldilocks-rl\[vllm\]'"):
        asyncio.run(Vllm(tiny_settings("first"), models).__aenter__())


RUN = """
import asyncio, json, sys
from pathlib import Path
from curation.policies.vllm import Vllm
from tests.curation.policies.conftest import asked, tiny_settings

async def main():
    async with Vllm(tiny_settings("first", data_parallel=2), Path(sys.argv[1])) as policy:
        done = await asyncio.gather(*(policy.answer(asked(number), 0) for number in range(12)))
        print(json.dumps([one.text for one in done]), flush=True)
        await asyncio.sleep(600)

if __name__ == "__main__":
    asyncio.run(main())
"""


@in_gate("training/vllm-copies")
def test_two_copies_answer_as_one_does_and_end_with_a_run_that_is_killed(
    models: Path, tmp_path: Path, engine: Vllm, run: Running
) -> None:
    """vLLM's own data parallelism, on a CPU: two engine processes; also, the start is quiet."""
    (tmp_path / "run.py").write_text(RUN)
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, str(tmp_path / "run.py"), str(models)],
            stdout=subprocess.PIPE,
            stderr=said,
            env={**os.environ, "PYTHONPATH": os.getcwd()},
            text=True,
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, (tmp_path / "said").read_text()
        assert json.loads(line) == [answer(engine, run, number).text for number in range(12)]
        assert [word for word in ("INFO", "WARNING", "ERROR") if word in (tmp_path / "said").read_text()] == []
        children = psutil.Process(process.pid).children(recursive=True)
        names = {word for child in children for word in child.cmdline()}
        assert {f"VLLM::EngineCore_DP{number}" for number in (0, 1)} <= names
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_gone(children)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_an_engine_that_dies_ends_the_requests_with_a_sentence(engine: Vllm, run: Running) -> None:
    """The last test of the module: nothing can ask this engine afterwards."""

    async def killed() -> None:
        await engine.answer(asked(), 1)  # an engine that dies before its first request is not noticed
        asking = [asyncio.ensure_future(engine.answer(asked(number), 1)) for number in range(4)]
        for child in psutil.Process().children():  # a server's engine is a child of the server
            if any("EngineCore" in word for word in child.cmdline()):
                child.kill()
        with pytest.raises(PolicyError, match=r"vLLM, model first"):
            await asyncio.gather(*asking)
        await asyncio.gather(*asking, return_exceptions=True)

    run(killed())
