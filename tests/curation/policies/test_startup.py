"""From settings to the arguments of vLLM's engine: the same for measuring, training and servers. Needs no vLLM."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.config import EngineSettings, VllmModel
from curation.policies.vllm import Vllm
from curation.policies.vllm.engine import DRAWING, Launch, engine_arguments
from curation.policies.vllm.serving import arguments
from training.embedded_model import WEIGHTS
from training.generation.vllm_settings import VllmGeneratorSettings

ENGINE = {"dtype": "float32", "max_model_len": 512, "kv_cache_mb": 64, "tensor_parallel": 2, "gpu_memory": 0.5}
SAME = ("dtype", "max_model_len", "kv_cache_memory_bytes", "tensor_parallel_size", "gpu_memory_utilization")


def test_what_policy_and_generator_share_reaches_the_engine_alike() -> None:
    policy = Vllm(VllmModel(kind="vllm", model=str(WEIGHTS), **ENGINE), Path()).engine
    generator = VllmGeneratorSettings(kind="vllm", **ENGINE)
    ours = engine_arguments(policy.launch, policy.settings, on_cpu=False)
    theirs = engine_arguments(Launch(str(WEIGHTS), "weights", 256), generator, on_cpu=False)
    assert ours == theirs
    assert [ours[name] for name in SAME] == ["float32", 512, 64 * 2**20, 2, 0.5]
    assert (ours["max_num_seqs"], ours["seed"], ours["enforce_eager"]) == (256, 0, False)


def test_on_a_cpu_nothing_is_compiled_and_no_prompt_is_read_in_pieces() -> None:
    chosen = engine_arguments(Launch("m", "m", 8, seed=3), EngineSettings(), on_cpu=True)
    assert (chosen["enforce_eager"], chosen["enable_chunked_prefill"]) == (True, False)
    assert (chosen["kv_cache_memory_bytes"], chosen["seed"]) == (2**30, 3)


@pytest.mark.parametrize("name", list(DRAWING))
def test_a_server_draws_as_an_engine_does(name: str) -> None:
    words = arguments("m", on_cpu=True)
    assert words[words.index(f"--{name.replace('_', '-')}") + 1] == DRAWING[name]
    assert engine_arguments(Launch("m", "m", 8), EngineSettings(), on_cpu=True)[name] == DRAWING[name]
