"""A training run by verl: recipe and folders in, a trained model and its records out, as of the embedded engine.

    OUT/run.json, metrics.jsonl, tensorboard/, attempts.jsonl, changes.jsonl, disputed.jsonl, summary.json, plots/
                              as `training.engines.embedded.run` describes them
    OUT/model/                the trained model in Hugging Face format, with its mark: what a refresh is given
    OUT/verl/train.parquet    the problems, as verl's dataset reads them; held_out.parquet too
    OUT/verl/job.json         what verl is started with; config.yaml: the whole configuration that it composed
    OUT/verl/differences.txt  what verl does otherwise than the embedded engine in this run
    OUT/verl/steps-N.jsonl    verl's own metrics of a run that went on after step N; log.txt: all that it said
    OUT/verl/checkpoints/     verl's checkpoints, with our curriculum's state in each

On a cluster the run's folder, the model and the data lie where all nodes see them, and the project is installed in
verl's environment on each.

Not here: what is trained how (`training.engines.verl.configuration`, `.plugin`).
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

from curation.policies.checkpoints import folder_revision
from curation.policies.vllm.placement import visible_gpus
from curation.records import StoreError
from curation.storage.stages import atomic_write
from training.embedded_model import resolve_model
from training.embedded_model.problems import Split
from training.engines.claim import claim_folder
from training.engines.placement import place_verl
from training.engines.processes import EngineError, failure, run_processes
from training.engines.verl.configuration import VerlConfiguration, VerlFiles, compile_recipe
from training.engines.verl.data import write_verl_set
from training.engines.verl.differences import refuse_what_differs, replacements
from training.engines.verl.environment import process_environment, require_interpreter
from training.engines.verl.following import MetricsFollower
from training.evaluation.metrics import read_metrics
from training.evaluation.monitors import open_monitors
from training.evaluation.plots import draw_plots
from training.optimisation.model import MARK, require_model
from training.recipe import TrainRecipe
from training.rollouts.tasks import load_tasks

INSIDE = "training.engines.verl.inside"

_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")


def train(recipe: TrainRecipe, recipe_folder: Path, out: Path, *, resume: bool = False) -> Path:
    """Train to the recipe's last step and return the folder of the trained model.

    Args:
        recipe_folder: what the recipe's relative paths refer to.
        out: the run's folder, absolute; new, or with ``resume`` that of a run of this recipe's name.
        resume: go on from verl's last checkpoint, or from the beginning where there is none.

    Raises:
        ConfigError: the recipe asks for what verl cannot do, or verl is not there.
        StoreError: the folder holds another run, or none to resume.
        EngineError: verl failed; the text names the process and its last lines.
    """
    refuse_what_differs(recipe)
    interpreter = require_interpreter(recipe.verl.python)
    job = prepare(recipe, recipe_folder, out, resume=resume)
    for line in replacements(recipe):
        print(f"verl: {line}", file=sys.stderr)
    begun_at, started = last_step(out), time.monotonic()
    check_configuration(out, interpreter)
    steps = out / "verl" / f"steps-{begun_at}.jsonl"
    steps.unlink(missing_ok=True)
    shown = open_monitors(recipe.monitor, recipe.name, out, recipe.model_dump(mode="json"))
    follower = MetricsFollower(out, steps, recipe.steps, begun_at, shown)
    environment = process_environment({**job.environment, "VERL_FILE_LOGGER_PATH": str(steps)})
    log = out / "verl" / "log.txt"
    command = [str(interpreter), "-m", INSIDE, str(out / "verl" / "job.json")]
    try:
        status = run_processes(command, environment, log, watch=follower.follow, folder=out)
    finally:
        follower.close()
    if status:
        raise failure(f"verl's run in {out}", status, log)
    model = publish_model(recipe, out)
    summary = {"name": recipe.name, "steps": last_step(out), "wall_s": time.monotonic() - started, "engine": "verl"}
    atomic_write(out / "summary.json", json.dumps(summary, indent=1) + "\n")
    draw_plots(read_metrics(out), out / "plots")
    return model


def prepare(recipe: TrainRecipe, recipe_folder: Path, out: Path, *, resume: bool = False) -> VerlConfiguration:
    """Claim the run's folder and write into it all that verl is started with; return that.

    Raises:
        ConfigError: the GPUs cannot be shared out as the recipe says.
        StoreError: the folder holds another run, or none to resume.
    """
    model = resolve_model(recipe.model, recipe_folder)
    require_model(model)
    experts = has_experts(model)
    gpus = gpus_per_node(recipe)
    placement = place_verl(recipe.verl, gpus, synchronous=recipe.synchronous, experts=experts)
    claim_folder(recipe, recipe_folder, out, resume=resume)
    ours = out / "verl"
    tasks = load_tasks(recipe.data, Split.TRAIN, recipe_folder)
    write_verl_set(tasks.values(), recipe.solving_prompt, ours / "train.parquet")
    held_out = None
    if recipe.evaluation.data is not None:
        held_out = ours / "held_out.parquet"
        others = load_tasks(recipe.evaluation.data, Split.HELD_OUT, recipe_folder).values()
        write_verl_set(islice(others, recipe.evaluation.problems), recipe.solving_prompt, held_out)
    files = VerlFiles(model.absolute(), out, ours / "train.parquet", held_out)
    job = compile_recipe(recipe, files, placement, experts=experts, gpus_per_node=gpus)
    atomic_write(ours / "job.json", job.as_json())
    atomic_write(ours / "differences.txt", "".join(f"{line}\n" for line in replacements(recipe)))
    return job


def check_configuration(out: Path, interpreter: Path) -> Path:
    """Have verl compose and check the configuration of a prepared run; return the composed one's file.

    Raises:
        EngineError: verl refuses it.
    """
    job, log = out / "verl" / "job.json", out / "verl" / "check.txt"
    log.unlink(missing_ok=True)
    command = [str(interpreter), "-m", INSIDE, str(job), "--check"]
    status = run_processes(command, process_environment({}), log, folder=out)
    if status:
        said = [line for line in log.read_text(encoding="utf-8").splitlines() if line.strip()]
        raise EngineError(f"{job}: {said[-1] if said else f'the check ended with status {status}'}; all of it: {log}")
    return job.with_name("config.yaml")


def last_step(out: Path) -> int:
    """Return the step of verl's last whole checkpoint; 0 where there is none."""
    mark = out / "verl" / "checkpoints" / "latest_checkpointed_iteration.txt"
    return int(mark.read_text(encoding="utf-8")) if mark.exists() else 0


def publish_model(recipe: TrainRecipe, out: Path) -> Path:
    """Put verl's last checkpoint, in Hugging Face format, in the place of the run's model, with its mark.

    Raises:
        StoreError: there is none, or not of the last step.
    """
    step = last_step(out)
    source = out / "verl" / "checkpoints" / f"global_step_{step}" / "actor" / "huggingface"
    if step < recipe.steps or not (source / "config.json").is_file() or not list(source.glob("*.safetensors")):
        raise StoreError(
            f"{out}: verl ended at step {step} of {recipe.steps} and left no model in {source}; look at "
            f"{out / 'verl' / 'log.txt'}, then resume the run."
        )
    aside, model = out / f".aside-model-{os.getpid()}", out / "model"
    shutil.rmtree(aside, ignore_errors=True)
    shutil.copytree(source, aside)
    revision = folder_revision(aside)
    (aside / MARK).write_text(json.dumps({"revision": revision}) + "\n", encoding="utf-8")
    shutil.rmtree(model, ignore_errors=True)
    aside.rename(model)
    return model


def gpus_per_node(recipe: TrainRecipe) -> int:
    """Return how many GPUs each node has: as the recipe says, or this machine; 1 where none is to be seen."""
    if recipe.verl.gpus_per_node != "auto":
        return recipe.verl.gpus_per_node
    return max(len(visible_gpus()), 1)


def has_experts(model: Path) -> bool:
    """Return whether a model's folder holds a mixture of experts."""
    table: Any = json.loads((model / "config.json").read_text(encoding="utf-8"))
    return any((part or {}).get(name) for part in (table, table.get("text_config")) for name in _EXPERTS)
