"""`--gpus` and `--batch`: who gets which GPU, what a cluster is given, and a training run with its servers."""

from __future__ import annotations

import itertools
import json
import os
import shlex
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from curation.config import VllmModel
from curation.policies.vllm import engine
from curation.records import ConfigError
from flows.cli import gpus
from flows.cli.gpus import MOUNT, copies_overrides
from flows.run.recipe import load_recipe
from flows.run.training import load_train_recipe, train_apart
from tests.places import ROOT
from tests.vllm_servers import skip_without_vllm
from training.engines.embedded.servers import server_command
from training.engines.placement import EmbeddedPlacement

MATH = ROOT / "flows" / "recipes" / "magistral_math.toml"
TRAIN = ROOT / "flows" / "recipes" / "train_embedded.toml"
VLLM = 'models.student={ kind = "vllm", model = "embedded", prompt = "plain", kv_cache_mb = 64, dtype = "float32" }'


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_engine_of_a_recipe_gets_all_gpus_unless_the_recipe_says_otherwise() -> None:
    recipe = load_recipe(MATH, ["models.student.data_parallel=1"])
    wide = recipe.models["student"].model_copy(update={"tensor_parallel": 4})
    recipe = recipe.model_copy(update={"models": {**recipe.models, "strong": wide}})
    assert copies_overrides(recipe, 8) == ["models.student.data_parallel=auto", "models.strong.data_parallel=auto"]
    assert copies_overrides(recipe, 0) == []
    assert copies_overrides(load_recipe(MATH), 8) == []  # `auto` does so itself
    assert copies_overrides(load_recipe(MATH, ["models.student.data_parallel=3"]), 8) == []
    with pytest.raises(
        ConfigError, match=r"models.strong: tensor_parallel = 4 times data_parallel = 1 is more than the 2"
    ):
        copies_overrides(recipe, 2)
    wide = wide.model_copy(update={"tensor_parallel": 2, "data_parallel": 2})
    copies = recipe.model_copy(update={"models": {**recipe.models, "strong": wide}})
    assert copies_overrides(copies, 8) == ["models.student.data_parallel=auto"]
    with pytest.raises(ConfigError, match=r"tensor_parallel = 2 times data_parallel = 2 is more than the 2 GPUs"):
        copies_overrides(copies, 2)


def test_a_generator_server_gets_what_the_recipe_says_of_its_engine() -> None:
    recipe = load_train_recipe(TRAIN, [VLLM, "models.student.tensor_parallel=2"])
    assert isinstance(recipe.trained, VllmModel)
    words = server_command(recipe, recipe.trained, Path("/models/m"), 8123)
    options = dict(itertools.pairwise(words))
    assert (options["--port"], options["--tensor-parallel-size"], options["--dtype"]) == ("8123", "2", "float32")
    assert options["--max-num-seqs"] == str(recipe.collector.n_async)
    assert options["--kv-cache-memory-bytes"] == str(64 * 2**20)
    assert "None" not in words


def test_a_slurm_job_runs_the_command_in_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    change = "models.student.model=models/solver 7B"
    text = gpus.batch_file("slurm", MATH.relative_to(ROOT), [change], Path("runs/math"), 8, None)
    assert text.startswith("#!/bin/bash\n#SBATCH --job-name=goldilocks-magistral-math\n")
    assert "\n#SBATCH --gpus-per-node=8\n" in text
    command = "goldilocks run flows/recipes/magistral_math.toml --gpus 8 --out runs/math --set"
    assert shlex.split(text.splitlines()[-1])[2:] == [*command.split(), change]


def test_a_manifest_names_what_the_api_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    changes = ["models.student.data_parallel=1", "name='my_set.1'"]
    made = yaml.safe_load(gpus.batch_file("kubernetes", MATH.relative_to(ROOT), changes, Path("runs/a"), 2, None))
    assert made["metadata"]["name"] == "goldilocks-my-set-1"
    pod = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["command"][:2] == ["goldilocks", "run"]
    assert container["command"][-1] == "name='my_set.1'"
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 2}
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert container["workingDir"] == MOUNT
    with pytest.raises(ConfigError, match="is outside of the volume"):
        gpus.batch_file("kubernetes", MATH, [], Path("runs/a"), 8, None)


def test_more_gpus_than_there_are_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(engine.VISIBLE, "3,5")
    with pytest.raises(ConfigError, match=r"--gpus 4: this machine has 2"):
        gpus.take_gpus(4)
    assert gpus.take_gpus(1) == ("3",)
    assert os.environ[engine.VISIBLE] == "3"
    with pytest.raises(ConfigError, match=r"--batch slurm needs the GPUs"):
        gpus.batch_file("slurm", MATH, [], None, None, None)


@pytest.mark.vllm
@pytest.mark.slow
def test_training_with_generator_servers_starts_and_ends_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_vllm()
    changes = [VLLM, "steps=2", "collector.n_async=32", "collector.n_batch=16", "collector.n_minibatch=16"]
    changes += ["collector.group_size=4", "rewards.max_length=96", "checks=false", "evaluation={}"]
    before, out = set(psutil.Process().children(recursive=True)), tmp_path / "run"
    on_cpu = EmbeddedPlacement(1, (), ((),))
    monkeypatch.setattr("training.engines.placement.place_embedded", lambda *_, **_more: on_cpu)
    model = train_apart(TRAIN, out, changes)
    assert (model / "model.safetensors").is_file()
    assert json.loads((out / "run.json").read_text())["recipe"]["models"]["student"]["kind"] == "vllm"
    steps = [row for row in lines(out / "metrics.jsonl") if row.get("step", 0) > 0]
    assert [row["step"] for row in steps] == [1, 2]
    assert steps[0]["policy/mismatch_max"] < 1e-3  # before any update, trainer and server agree
    assert all(row["speed/update_s"] > 0 for row in steps)
    ledger = json.loads((out / "summary.json").read_text())["ledger"]
    assert ledger["trained"] == 16 * 2
    assert ledger["admitted"] == ledger["trained"] + sum(ledger["dropped"].values())
    assert any(one["newest"] > one["oldest"] for one in lines(out / "attempts.jsonl"))  # updates came in mid-generation
    assert set(psutil.Process().children(recursive=True)) <= before
