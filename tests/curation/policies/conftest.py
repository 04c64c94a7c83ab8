"""Two real tiny models of one shape, and one engine for all tests that ask it."""

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from curation.config import Decoding, VllmModel
from curation.policies.vllm import Vllm
from curation.records import Domain, PromptRequest
from tests.curation.policies.tiny_llama import make_tiny_llama

T = TypeVar("T")


class Running(Protocol):
    """Runs a coroutine in the loop that the engine lives in."""

    def __call__(self, work: Coroutine[Any, Any, T]) -> T: ...


def asked(number: int = 0, statement: str = "What is 2 + 2?") -> PromptRequest:
    """A problem as a policy sees it."""
    return PromptRequest(f"{number:020x}", statement, Domain.MATH, "en")


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the models `first` and `second`, which has other weights."""
    pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("models")
    make_tiny_llama(folder / "first", seed=1)
    make_tiny_llama(folder / "second", seed=2)
    return folder


def tiny_settings(model: str, **changes: Any) -> VllmModel:
    """Settings with which the engine starts quickly and computes in fp32."""
    sizes = {"dtype": "float32", "max_model_len": 1024, "in_flight": 32, "kv_cache_mb": 64}
    decoding = Decoding(temperature=0.7, top_p=0.9, max_tokens=48)
    return VllmModel(**{"kind": "vllm", "model": model, "prompt": "plain", **sizes, "decoding": decoding, **changes})


@pytest.fixture(scope="session")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


@pytest.fixture(scope="session")
def run(loop: asyncio.AbstractEventLoop) -> Running:
    return loop.run_until_complete


@pytest.fixture(scope="module")
def engine(models: Path, run: Running) -> Iterator[Vllm]:
    """The one engine of `test_vllm`, whose last test ends it."""
    pytest.importorskip("vllm")
    policy = Vllm(tiny_settings("first"), models)
    run(policy.__aenter__())
    yield policy
    run(policy.__aexit__(None, None, None))
