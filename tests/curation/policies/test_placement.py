"""Which GPUs a model's copies and servers get, and how many copies there are."""

from pathlib import Path

import pytest

from curation.policies.vllm import Vllm
from curation.policies.vllm.engine import gpu_shares, policy_gpus, visible_gpus
from curation.records import PolicyError
from tests.curation.policies.conftest import tiny_settings


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


@pytest.mark.parametrize(("visible", "gpus"), [("4,GPU-ab, 6", ("4", "GPU-ab", "6")), ("", ()), ("1,-1,2", ("1",))])
def test_gpus_that_are_hidden_from_the_run_are_nobodys(
    visible: str, gpus: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert visible_gpus() == gpus


def test_a_policy_has_as_many_copies_as_it_says_or_as_there_are_gpus_for(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    policies = [Vllm(tiny_settings("first", data_parallel=copies), models) for copies in (1, 3, "auto")]
    assert [policy.copies for policy in policies] == [1, 3, 4]
    assert [policy.in_flight for policy in policies] == [32, 96, 128]
    assert tiny_settings("first", data_parallel=1).model_dump() == tiny_settings("first").model_dump()
    with pytest.raises(PolicyError, match="5 copies of 1 GPUs each need 5 GPUs, and this machine has 4"):
        Vllm(tiny_settings("first", data_parallel=5), models)._require_gpus()
