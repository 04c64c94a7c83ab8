"""From settings to the arguments of vLLM's engine: the same for measuring, training and servers. Needs no vLLM."""

from __future__ import annotations

from curation.config import EngineSettings
from curation.policies.vllm.engine import Launch, engine_arguments


def test_on_a_cpu_nothing_is_compiled_and_no_prompt_is_read_in_pieces() -> None:
    chosen = engine_arguments(Launch("m", "m", 8, seed=3), EngineSettings(), on_cpu=True)
    assert (chosen["enforce_eager"], chosen["enable_chunked_prefill"]) == (True, False)
    assert (chosen["kv_cache_memory_bytes"], chosen["seed"]) == (2**30, 3)
