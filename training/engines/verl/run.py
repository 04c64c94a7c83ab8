"""Run a training recipe with verl, and write the trained model and its records.

    OUT/run.json, metrics.jsonl, tensorboard/, attempts.jsonl, changes.jsonl, summary.json
                              as in `training.engines.embedded.run`
    OUT/model/                the trained model in Hugging Face format
    OUT/verl/train.parquet    the problems; held_out.parquet too
    OUT/verl/job.json         what starts the present stage; config.yaml: what verl composed of it
    OUT/verl/differences.txt  what verl does differently
    OUT/verl/steps-N.jsonl    verl's metrics of the process that began after step N; log.txt: its output
    OUT/verl/checkpoints/     verl's checkpoints, with our curriculum's state

All nodes must see this folder, the model and the data, and have verl's environment.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from curation.policies.checkpoints import folder_revision
from curation.policies.vllm.placement import visible_gpus
from curation.prompts.asked import write_asked
from curation.records import StoreError
from curation.response_formats import BOXED
from curation.storage.locks import lock_folder
from curation.storage.stages import atomic_write
from training.embedded_model import resolve_model
from training.embedded_model.problems import Split
from training.engines.mirroring import RunMirror, claim_folder
from training.engines.placement import EXPERT_COUNTS, VerlPlacement, model_shape, place_verl
from training.engines.processes import PATIENCE_S, EngineError, failure, run_processes, said_since
from training.engines.verl.configuration import (
    RECIPE_VARIABLE,
    VerlConfiguration,
    VerlFiles,
    compile_recipe,
    earlier_steps,
    steps_file,
)
from training.engines.verl.data import write_verl_set
from training.engines.verl.differences import refuse_what_differs, replacements
from training.engines.verl.environment import process_environment, require_interpreter
from training.engines.verl.following import MetricsFollower
from training.engines.verl.stages import VerlStage, last_step, present_stage
from training.evaluation.monitors import open_monitors
from training.optimisation.model import MARK, replaced, require_model
from training.recipe import TrainRecipe
from training.rollouts.tasks import load_tasks

INSIDE = "training.engines.verl.inside"

TRAIN, HELD_OUT = "train.parquet", "held_out.parquet"


def train(recipe: TrainRecipe, recipe_folder: Path, out: Path, *, resume: bool = False) -> Path:
    """Train to the recipe's last step and return the trained model's folder.

    Args:
        out: absolute; new, or with ``resume`` a run of this recipe's name.

    Raises:
        ConfigError: verl cannot do what the recipe asks, or is not installed.
        StoreError: the folder holds another run, one that still runs, or none to resume.
        EngineError: verl failed; names the process and its last lines.
    """
    refuse_what_differs(recipe)
    interpreter = require_interpreter()
    with RunMirror(recipe.storage.mirror, recipe.name, out, _say) as mirror, lock_folder(out / "verl"):
        await_leftovers(out, _say)
        return _train(recipe, recipe_folder, out, interpreter, mirror, resume=resume)


def _train(
    recipe: TrainRecipe, recipe_folder: Path, out: Path, interpreter: Path, mirror: RunMirror, *, resume: bool
) -> Path:
    prepare(recipe, recipe_folder, out, resume=resume)
    for line in replacements(recipe):
        _say(f"verl: {line}")
    started = time.monotonic()
    while (stage := present_stage(recipe, out)).begun_at < recipe.steps:
        _run_stage(recipe, stage, recipe_folder, out, interpreter, mirror)
        if last_step(out) <= stage.begun_at:
            break  # no step further: the model is not there, which `publish_model` says
    model = publish_model(recipe, out)
    summary = {"name": recipe.name, "steps": last_step(out), "wall_s": time.monotonic() - started, "engine": "verl"}
    atomic_write(out / "summary.json", json.dumps(summary, indent=1) + "\n")
    return model


def _run_stage(
    recipe: TrainRecipe, stage: VerlStage, recipe_folder: Path, out: Path, interpreter: Path, mirror: RunMirror
) -> None:
    job = write_job(recipe, stage, recipe_folder, out)
    if recipe.curriculum is not None and recipe.curriculum.stages:
        of, lengths = len(recipe.curriculum.stages), stage.recipe.rewards
        told = f"from step {stage.begun_at} to {stage.ends_at} at the latest, l_max = {lengths.max_length:,}"
        _say(f"stage {stage.number + 1} of {of}: {told}, n_batch = {stage.recipe.collector.n_batch:,}")
    check_configuration(out, interpreter)
    steps = steps_file(out, stage.begun_at)
    steps.unlink(missing_ok=True)
    shown = open_monitors(recipe.monitor, recipe.name, out, recipe.model_dump(mode="json"))
    follower = MetricsFollower(out, steps, recipe.steps, stage.begun_at, shown, earlier_steps(out))
    environment = process_environment({**job.environment, **token_variables(recipe.verl.ray_address, os.environ)})
    log = out / "verl" / "log.txt"
    begun = log.stat().st_size if log.exists() else 0
    command = [str(interpreter), "-m", INSIDE, str(out / "verl" / "job.json")]
    copied = last_step(out)

    def watch() -> None:
        nonlocal copied
        follower.follow()
        if (step := last_step(out)) != copied:
            copied = step
            mirror.wake()

    try:
        status = run_processes(command, environment, log, watch=watch, folder=out)
    finally:
        follower.close()
    if status:
        if refused := refusal(recipe.verl.ray_address, said_since(log, begun), log):
            raise EngineError(refused)
        raise failure(f"verl's run in {out}", status, log, begun)


def prepare(recipe: TrainRecipe, recipe_folder: Path, out: Path, *, resume: bool = False) -> VerlConfiguration:
    """Claim the run's folder; write and return what starts verl.

    Raises:
        ConfigError: the GPUs cannot be divided.
        StoreError: the folder holds another run, or none to resume.
    """
    require_model(resolve_model(recipe.trained.model, recipe_folder))
    placement = placed(recipe, recipe_folder)
    if placement.why:
        _say(placement.why)
    claim_folder(recipe, recipe_folder, out, resume=resume)
    ours = out / "verl"
    tasks = load_tasks(recipe.data, Split.TRAIN, recipe_folder)
    write_verl_set(tasks.values(), recipe.solving_prompt, ours / TRAIN)
    if recipe.evaluation.data is not None:
        others = load_tasks(recipe.evaluation.data, Split.HELD_OUT, recipe_folder).values()
        write_verl_set(islice(others, recipe.evaluation.problems), recipe.solving_prompt, ours / HELD_OUT)
    atomic_write(ours / "differences.txt", "".join(f"{line}\n" for line in replacements(recipe)))
    return write_job(recipe, present_stage(recipe, out), recipe_folder, out)


def write_job(whole: TrainRecipe, stage: VerlStage, recipe_folder: Path, out: Path) -> VerlConfiguration:
    """Write and return a stage's configuration; ``whole`` decides the placement."""
    recipe, ours = stage.recipe, out / "verl"
    model = resolve_model(recipe.trained.model, recipe_folder)
    held_out = ours / HELD_OUT if recipe.evaluation.data is not None else None
    files = VerlFiles(model.absolute(), out, ours / TRAIN, held_out, recipe_folder.absolute())
    job = compile_recipe(
        recipe,
        files,
        placed(whole, recipe_folder),
        experts=has_experts(model),
        gpus_per_node=gpus_per_node(recipe),
        begun_at=stage.begun_at,
        ends_at=stage.ends_at,
    )
    atomic_write(ours / "job.json", job.as_json())
    return job


def placed(recipe: TrainRecipe, recipe_folder: Path) -> VerlPlacement:
    """Return the GPUs that train and generate.

    Raises:
        ConfigError: they cannot be divided, or the model's sizes cannot be read.
    """
    experts, costs = has_experts(resolve_model(recipe.trained.model, recipe_folder)), recipe.costs
    shape = model_shape(recipe, costs, recipe_folder) if costs is not None else None
    return place_verl(recipe, gpus_per_node(recipe), experts=experts, shape=shape)


def check_configuration(out: Path, interpreter: Path) -> Path:
    """Have verl check a prepared run's configuration; return the composed file.

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


def publish_model(recipe: TrainRecipe, out: Path) -> Path:
    """Copy verl's last checkpoint to the run's model.

    Raises:
        StoreError: there is none of the last step.
    """
    step = last_step(out)
    source = out / "verl" / "checkpoints" / f"global_step_{step}" / "actor" / "huggingface"
    if step < recipe.steps or not (source / "config.json").is_file() or not list(source.glob("*.safetensors")):
        raise StoreError(
            f"{out}: verl ended at step {step} of {recipe.steps} and left no model in {source}; look at "
            f"{out / 'verl' / 'log.txt'}, then resume the run."
        )
    model = out / "model"
    with replaced(model) as aside:
        shutil.copytree(source, aside, dirs_exist_ok=True)
        write_asked(aside, recipe.trained, BOXED)
        (aside / MARK).write_text(json.dumps({"revision": folder_revision(aside)}) + "\n", encoding="utf-8")
    return model


def gpus_per_node(recipe: TrainRecipe) -> int:
    """Return each node's GPUs: stated, or this machine's, at least 1."""
    if recipe.verl.gpus_per_node != "auto":
        return recipe.verl.gpus_per_node
    return max(len(visible_gpus()), 1)


def has_experts(model: Path) -> bool:
    """Return whether a model's folder holds a mixture of experts."""
    table: Any = json.loads((model / "config.json").read_text(encoding="utf-8"))
    return any((part or {}).get(name) for part in (table, table.get("text_config")) for name in EXPERT_COUNTS)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


MODE, TOKENS = "RAY_AUTH_MODE", ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")

_REFUSED = ("InvalidAuthToken", "AuthenticationError")
"""Ray's errors for a missing or wrong token."""


def token_variables(address: str | None, variables: Mapping[str, str]) -> dict[str, str]:
    """Return what makes Ray send its token to ``address``, if any."""
    if address is None or MODE in variables or not any(variables.get(name) for name in TOKENS):
        return {}
    return {MODE: "token"}


def refusal(address: str | None, said: str, log: Path) -> str:
    """Return an error message if the cluster refused the token."""
    if address is None or not any(words in said for words in _REFUSED):
        return ""
    return (
        f"verl.ray_address = {address!r}: the Ray cluster asks for a token, and this run sent none or another; set "
        f"{TOKENS[0]} to the one that the cluster was started with, or {TOKENS[1]} to the file that holds it, such as "
        f"~/.ray/auth_token of its head (what Ray said: {log})."
    )


_LOOK_S = 0.2


def processes_of(out: Path) -> list[int]:
    """Return the ids of the run's other processes, ascending."""
    variable, found = f"{RECIPE_VARIABLE}=".encode(), []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # another user's, or one that has just ended
            told = [entry for entry in file.read_bytes().split(b"\0") if entry.startswith(variable)]
            if told and json.loads(told[0][len(variable) :])["out"] == str(out):
                found.append(int(file.parent.name))
    return sorted(set(found) - {os.getpid()})


def await_leftovers(out: Path, say: Callable[[str], None], patience_s: float = PATIENCE_S) -> None:
    """Wait for an earlier start's processes; kill those left after ``patience_s``.

    Args:
        out: absolute; no one else starts the run meanwhile.
    """
    left, ends = processes_of(out), time.monotonic() + patience_s
    if left:
        say(
            f"{out}: {len(left)} processes of this run's earlier start are still ending (the eldest is {left[0]}); it "
            f"goes on when they are gone, in {patience_s:g} s at the latest."
        )
    while left and time.monotonic() < ends:
        time.sleep(_LOOK_S)
        left = processes_of(out)
    if left:
        say(f"{out}: {len(left)} of them did not end by themselves and are killed.")
    while left:
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_LOOK_S)
        left = processes_of(out)
