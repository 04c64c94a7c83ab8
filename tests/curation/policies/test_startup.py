"""From settings to the arguments of vLLM's engine: the same for measuring, training and servers. Needs no vLLM."""

from __future__ import annotations

import pytest

from curation.config import EngineSettings
from curation.policies.vllm.engine import DRAWING, Launch, engine_arguments
from curation.policies.vllm.serving import arguments


def test_on_a_cpu_nothing_is_compiled_and_no_prompt_is_read_in_pieces() -> None:
    chosen = engine_arguments(Launch("m", "m", 8, seed=3), EngineSettings(), on_cpu=True)
    assert (chosen["enforce_eager"], chosen["enable_chunked_prefill"]) == (True, False)
    assert (chosen["kv_cache_memory_bytes"], chosen["seed"]) == (2**30, 3)


@pytest.mark.parametrize("name", list(DRAWING))
def test_a_server_draws_as_an_engine_does(name: str) -> None:
    words = arguments("m", on_cpu=True)
    assert words[words.index(f"--{name.replace('_', '-')}") + 1] == DRAWING[name]
    assert engine_arguments(Launch("m", "m", 8), EngineSettings(), on_cpu=True)[name] == DRAWING[name]
