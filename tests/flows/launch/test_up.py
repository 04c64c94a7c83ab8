"""`goldilocks up`: who gets which GPU, what a cluster is given, and a training run with its servers."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import psutil
import pytest
import yaml

from curation.config import SecondStage
from curation.policies.vllm import placement
from curation.records import ConfigError
from flows.cli import up
from flows.launch.batch_files import MOUNT, Launch, kubernetes_manifest
from flows.launch.layout import TrainingLayout, replica_overrides, training_layout
from flows.launch.training import generator_override, is_training_recipe, server_command, train_on, training_arguments
from flows.run.recipe import load_recipe
from flows.run.training import load_train_recipe
from tests.places import ROOT

MATH = ROOT / "flows" / "recipes" / "magistral_math.toml"
TRAIN = ROOT / "flows" / "recipes" / "train_embedded.toml"
VLLM = 'generator={ kind = "vllm", kv_cache_mb = 64, dtype = "float32" }'
GOLDEN = Path(__file__).parent
EIGHT = tuple(str(number) for number in range(8))


def test_every_engine_of_a_recipe_gets_all_gpus_unless_the_recipe_says_otherwise() -> None:
    recipe = load_recipe(MATH, ["stage1.policy.replicas=1"])
    wide = recipe.stage1.policy.model_copy(update={"tensor_parallel": 4})
    recipe = recipe.model_copy(update={"grader": None, "stage2": SecondStage(policy=wide)})
    assert replica_overrides(recipe, 8) == ["stage1.policy.replicas=8", "stage2.policy.replicas=2"]
    assert replica_overrides(recipe, 0) == []
    assert replica_overrides(load_recipe(MATH), 8) == []  # `auto` says so itself
    assert replica_overrides(load_recipe(MATH, ["stage1.policy.replicas=3"]), 8) == []
    with pytest.raises(ConfigError, match=r"stage2.policy.tensor_parallel = 4 is more than the 2 GPUs"):
        replica_overrides(recipe, 2)


def test_the_gpus_of_a_training_run_are_parted_between_trainers_and_generators() -> None:
    recipe = load_train_recipe(TRAIN, [VLLM])
    assert training_layout(recipe, EIGHT) == TrainingLayout(EIGHT[:4], tuple((name,) for name in EIGHT[4:]))
    assert training_layout(recipe, EIGHT, 6) == TrainingLayout(EIGHT[:6], (("6",), ("7",)))
    wide = load_train_recipe(TRAIN, [VLLM, "generator.tensor_parallel=2"])
    assert training_layout(wide, EIGHT[:6]) == TrainingLayout(EIGHT[:4], (("4", "5"),))
    assert training_layout(load_train_recipe(TRAIN), EIGHT) == TrainingLayout(EIGHT, ())  # torch: in the trainer
    for gpus, trainers in ((EIGHT, 8), (EIGHT[:1], None)):
        with pytest.raises(ConfigError, match="so that there are some of both"):
            training_layout(recipe, gpus, trainers)


def test_a_training_run_is_told_of_its_servers_and_goes_on_where_it_was(tmp_path: Path) -> None:
    asked = generator_override(["http://127.0.0.1:1", "http://127.0.0.1:2"], 64)
    generator = load_train_recipe(TRAIN, [asked]).generator
    assert generator.kind == "endpoint"
    assert (generator.urls, generator.per_server) == (("http://127.0.0.1:1", "http://127.0.0.1:2"), 64)
    assert training_arguments(TRAIN, tmp_path, [asked]) == [str(TRAIN), "--out", str(tmp_path), "--set", asked]
    (tmp_path / "run.json").touch()
    assert training_arguments(TRAIN, tmp_path, []) == ["--resume", str(tmp_path)]


def test_a_generator_server_gets_what_the_recipe_says_of_its_engine() -> None:
    recipe = load_train_recipe(TRAIN, [VLLM, "generator.tensor_parallel=2", 'compute.head_dtype="float32"'])
    assert recipe.generator.kind == "vllm"
    words = server_command(recipe, recipe.generator, Path("/models/m"), 8123)
    options = dict(itertools.pairwise(words))
    assert (options["--port"], options["--tensor-parallel-size"], options["--dtype"]) == ("8123", "2", "float32")
    assert options["--max-num-seqs"] == str(recipe.collector.n_async)
    assert options["--kv-cache-memory-bytes"] == str(64 * 2**20)
    assert json.loads(options["--hf-overrides"]) == {"head_dtype": "float32"}
    assert "None" not in words


def test_which_recipe_is_the_trainers() -> None:
    recipes = sorted((ROOT / "flows" / "recipes").glob("*.toml"))
    assert [path.stem for path in recipes if is_training_recipe(path)] == [
        path.stem for path in recipes if path.stem.startswith(("train_", "grader_", "rl_"))
    ]


@pytest.mark.parametrize(("kind", "name"), [("slurm", "golden.sbatch"), ("kubernetes", "golden.yaml")])
def test_what_a_cluster_is_given_is_as_it_was_looked_at(kind: str, name: str) -> None:
    recipe, out = Path("flows/recipes/magistral_math.toml"), Path("runs/math")
    set_to = ["stage1.policy.model=models/solver 7B"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        text = up.batch_file(recipe, set_to, out, 8, None, kind, "registry/goldilocks:1", "work")
    assert text == (GOLDEN / name).read_text(encoding="utf-8")


def test_a_manifest_names_what_the_api_asks_for() -> None:
    made = yaml.safe_load(kubernetes_manifest(Launch("My_Set.1", Path("a.toml"), Path("runs/a"), 2), "image", "claim"))
    assert made["metadata"]["name"] == "goldilocks-my-set-1"
    (part,) = made["spec"]["replicatedJobs"]
    pod = part["template"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["command"][:3] == ["goldilocks", "up", "a.toml"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 2}
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert container["workingDir"] == MOUNT
    with pytest.raises(ConfigError, match="is no path in the volume"):
        kubernetes_manifest(Launch("a", Path("/home/me/a.toml"), Path("runs/a"), 2), "image", "claim")


def test_more_gpus_than_there_are_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(placement.VISIBLE, "3,5")
    with pytest.raises(ConfigError, match=r"--gpus 4: this machine has 2"):
        up.up(MATH, [], None, 4)
    assert up._take_gpus(1) == ("3",)
    assert os.environ[placement.VISIBLE] == "3"
    with pytest.raises(ConfigError, match=r"--slurm: say how many GPUs"):
        up.batch_file(MATH, [], None, None, None, "slurm", "", "")


@pytest.mark.vllm
@pytest.mark.slow
def test_training_with_two_generator_servers_starts_and_ends_them(tmp_path: Path) -> None:
    """On a CPU: two steps of the embedded model, with two servers and one trainer."""
    pytest.importorskip("vllm")
    changes = [VLLM, "steps=2", "collector.n_async=32", "collector.n_batch=16", "collector.n_minibatch=16"]
    changes += ["collector.group_size=8", "data.problems=64", "max_tokens=96", "checks=false", "evaluation={}"]
    before = set(psutil.Process().children(recursive=True))
    recipe = load_train_recipe(TRAIN, changes)
    model = train_on(recipe, TRAIN, tmp_path / "run", TrainingLayout((), ((), ())), changes)
    assert (model / "model.safetensors").is_file()
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["step"] == 2
    assert set(psutil.Process().children(recursive=True)) <= before
