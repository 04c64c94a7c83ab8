"""A recipe written for prime-rl: its configuration, the taskset beside it, and its own schema's word on both."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from flows.pipelines.prime_rl import main, write_prime_rl
from tests.consumers.environments import PRIME_RL_CHECK, missing_prime_rl, prime_rl_python
from tests.curation.publish.test_export_formats import MATH, OTHER, curated

RECIPE = """
name = "for-prime-rl"
steps = 9
model = "student"
models.student = { kind = "vllm", model = "embedded", decoding = { temperature = 0.8 } }
rewards = { max_length = 300 }
data = { kind = "curated", folders = ["set/curated"] }
collector = { group_size = 8, n_async = 512, n_batch = 256, max_staleness = 3 }
optim = { learning_rate = 2e-6, warmup_steps = 5 }
verl = { gpus_per_node = 8, nodes = NODES }
"""


def recipe(folder: Path, nodes: int = 1) -> Path:
    curated(folder / "set" / "curated", MATH, OTHER)
    path = folder / "recipe.toml"
    path.write_text(RECIPE.replace("NODES", str(nodes)))
    return path


def test_a_recipe_becomes_prime_rls_table_and_its_set_a_taskset(tmp_path: Path) -> None:
    table = tomllib.loads(write_prime_rl(recipe(tmp_path), tmp_path / "out").read_text())
    orchestrator = table["orchestrator"]
    assert (table["max_steps"], orchestrator["batch_size"], orchestrator["group_size"]) == (9, 256, 8)
    assert (orchestrator["max_off_policy_steps"], orchestrator["concurrency"]["initial_inflight"]) == (3, 512)
    assert orchestrator["train"]["sampling"] == {"temperature": 0.8, "max_completion_tokens": 300}
    assert table["trainer"]["optim"]["lr"] == 2e-6
    assert table["deployment"]["num_train_gpus"] == table["deployment"]["num_infer_gpus"] == 4
    assert list((tmp_path / "out" / "taskset").glob("goldilocks_taskset*"))
    assert "not divided by the minibatch's deviation" in (tmp_path / "out" / "differences.txt").read_text()


@pytest.mark.parametrize(
    ("override", "said"),
    [("collector.max_staleness=0", "prime-rl never waits"), ('data={kind="embedded"}', "is given one curated set")],
)
def test_refusals(override: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(recipe(tmp_path)), "--out", str(tmp_path / "out"), "--set", override]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 4])
def test_prime_rls_own_schema_takes_the_file(nodes: int, tmp_path: Path) -> None:
    if why := missing_prime_rl():
        pytest.skip(why)
    written = write_prime_rl(recipe(tmp_path, nodes), tmp_path / "out")
    command = [str(prime_rl_python()), "-c", PRIME_RL_CHECK, str(written)]
    path = os.pathsep.join([str(Path.cwd()), str(tmp_path / "out" / "taskset")])
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["9", "256", "goldilocks-taskset"]
    wrong = written.read_text().replace("group_size", "groupsize")
    written.write_text(wrong)
    refused = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert refused.returncode != 0
    assert "groupsize" in refused.stdout + refused.stderr
