"""Run a training recipe with verl, and write the trained model and its records.

    OUT/run.json, metrics.jsonl, tensorboard/, attempts.jsonl, changes.jsonl, summary.json
                              see `training.engines.embedded.run`
    OUT/model/                the trained model in Hugging Face format
    OUT/verl/train.parquet    the problems; held_out.parquet too
    OUT/verl/job.json         the current stage; config.yaml: verl's configuration of it
    OUT/verl/differences.txt  differences to the embedded engine
    OUT/verl/steps-N.jsonl    metrics of the process that began after step N; log.txt: all output
    OUT/verl/checkpoints/     verl's checkpoints, with the curriculum's state

All nodes need this folder, the model, the data and verl's environment.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from curation.policies.checkpoints import folder_revision
from curation.policies.vllm.engine import visible_gpus
from curation.prompts import Prompt
from curation.prompts.asked import Asked, write_asked
from curation.publish.export_formats.rows import TYPES, ExportedProblem, row_of
from curation.records import PolicyError, StoreError
from curation.response_formats import BOXED
from curation.storage.locks import lock_folder
from curation.storage.stages import atomic_write, write_parquet
from training.embedded_model import resolve_model
from training.embedded_model.problems import Split
from training.engines.mirroring import RunMirror, claim_folder
from training.engines.placement import EXPERT_COUNTS, VerlPlacement, place_verl
from training.engines.processes import EngineError, failure, run_processes
from training.engines.verl.configuration import (
    HELD_OUT,
    RECIPE_VARIABLE,
    TRAIN,
    compile_recipe,
    refuse_what_differs,
    replacements,
)
from training.engines.verl.environment import RAY_TOKENS, process_environment, require_interpreter
from training.engines.verl.following import MetricsFollower
from training.engines.verl.stages import VerlStage, last_step, present_stage
from training.evaluation.metrics import open_monitors
from training.optimisation.model import MARK, replaced, require_model
from training.recipe import TrainRecipe
from training.rollouts.tasks import TrainingTask, load_tasks

INSIDE = "training.engines.verl.inside"

_EXPORT = "verl"
"""The format of `goldilocks export`."""

_LOOK_S = 0.2


def train(recipe: TrainRecipe, recipe_folder: Path, out: Path, *, resume: bool = False) -> Path:
    """Train in ``out``, an absolute path, and return the model's folder."""
    refuse_what_differs(recipe)
    interpreter = require_interpreter()
    with RunMirror(recipe.storage.mirror, recipe.name, out, _say) as mirror, lock_folder(out / "verl"):
        end_leftovers(out)
        prepare(recipe, recipe_folder, out, resume=resume)
        for line in replacements(recipe):
            _say(f"verl: {line}")
        started = time.monotonic()
        while (stage := present_stage(recipe, out)).begun_at < recipe.steps:
            _run_stage(recipe, stage, recipe_folder, out, interpreter, mirror)
            if last_step(out) <= stage.begun_at:
                break  # no progress: `publish_model` reports the missing model
        model = publish_model(recipe, out)
        summary = {"name": recipe.name, "steps": last_step(out), "wall_s": time.monotonic() - started, "engine": "verl"}
        atomic_write(out / "summary.json", json.dumps(summary, indent=1) + "\n")
        return model


def _run_stage(
    recipe: TrainRecipe, stage: VerlStage, recipe_folder: Path, out: Path, interpreter: Path, mirror: RunMirror
) -> None:
    job = write_job(recipe, stage, recipe_folder, out)
    if recipe.stages:
        _say(
            f"stage {stage.number + 1} of {len(recipe.stages)}: from step {stage.begun_at} to {stage.ends_at} at the "
            f"latest, l_max = {stage.recipe.rewards.max_length:,}, n_batch = {stage.recipe.collector.n_batch:,}"
        )
    shown = open_monitors(recipe.monitor, recipe.name, out, recipe.model_dump(mode="json"))
    log, copied = out / "verl" / "log.txt", last_step(out)
    begun = log.stat().st_size if log.exists() else 0

    with MetricsFollower(out, recipe.steps, stage.begun_at, shown) as follower:

        def watch() -> None:
            nonlocal copied
            follower.follow()
            if (step := last_step(out)) != copied:
                copied = step
                mirror.wake()

        command = [str(interpreter), "-m", INSIDE, str(out / "verl" / "job.json")]
        status = run_processes(command, process_environment(job["environment"]), log, watch=watch, folder=out)
    if status:
        output = log.read_bytes()[begun:].decode("utf-8", "replace") if log.exists() else ""
        if recipe.verl.ray_address is not None and any(word in output for word in _REFUSED_TOKENS):
            raise EngineError(
                f"verl.ray_address = {recipe.verl.ray_address!r}: the cluster refuses this run's token; set "
                f"{' or '.join(RAY_TOKENS)} to the cluster's ({log})."
            )
        raise failure(f"verl's run in {out}", status, log, begun)


_REFUSED_TOKENS = ("InvalidAuthToken", "AuthenticationError")
"""Ray's errors for a wrong token."""


def prepare(recipe: TrainRecipe, recipe_folder: Path, out: Path, *, resume: bool = False) -> None:
    """Claim the run's folder; write problems and differences."""
    require_model(resolve_model(recipe.trained.model, recipe_folder))
    if why := placed(recipe, recipe_folder).why:
        _say(why)
    claim_folder(recipe, recipe_folder, out, resume=resume)
    folder = out / "verl"
    tasks = load_tasks(recipe.data, Split.TRAIN, recipe_folder)
    write_verl_set(tasks.values(), recipe.solving_prompt, folder / TRAIN)
    if recipe.evaluation.data is not None:
        held_out = load_tasks(recipe.evaluation.data, Split.HELD_OUT, recipe_folder).values()
        write_verl_set(islice(held_out, recipe.evaluation.problems), recipe.solving_prompt, folder / HELD_OUT)
    atomic_write(folder / "differences.txt", "".join(f"{line}\n" for line in replacements(recipe)))


def write_job(whole: TrainRecipe, stage: VerlStage, recipe_folder: Path, out: Path) -> dict[str, Any]:
    """Write and return a stage's job; ``whole`` decides the placement."""
    model = resolve_model(stage.recipe.trained.model, recipe_folder)
    job = compile_recipe(
        stage.recipe,
        model.absolute(),
        out,
        placed(whole, recipe_folder),
        begun_at=stage.begun_at,
        ends_at=stage.ends_at,
        recipe_folder=recipe_folder.absolute(),
    )
    atomic_write(out / "verl" / "job.json", json.dumps(job, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    return job


def placed(recipe: TrainRecipe, recipe_folder: Path) -> VerlPlacement:
    """Return the GPUs that train and generate."""
    experts, gpus = has_experts(resolve_model(recipe.trained.model, recipe_folder)), recipe.verl.gpus_per_node
    here = max(len(visible_gpus()), 1) if gpus == "auto" else gpus
    return place_verl(recipe, here, recipe_folder, experts=experts)


def check_configuration(out: Path, interpreter: Path) -> None:
    """Have verl check a prepared run's configuration."""
    job, log = out / "verl" / "job.json", out / "verl" / "check.txt"
    log.unlink(missing_ok=True)
    command = [str(interpreter), "-m", INSIDE, str(job), "--check"]
    if status := run_processes(command, process_environment({}), log, folder=out):
        raise failure(f"verl's check of {job}", status, log)


def write_verl_set(tasks: Iterable[TrainingTask], prompt: Prompt, file: Path) -> int:
    """Write the tasks as `goldilocks export --format verl` does; return their number."""
    rows = [row_of(_EXPORT, _exported(task, prompt, number)) for number, task in enumerate(tasks)]
    types = {name: dtype for name, dtype in TYPES.items() if name in rows[0]}
    file.parent.mkdir(parents=True, exist_ok=True)
    write_parquet(file, pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None))
    return len(rows)


def _exported(task: TrainingTask, prompt: Prompt, number: int) -> ExportedProblem:
    request = task.request
    row = {
        "id": task.id,
        "group": task.id,
        "source": "",
        "lang": request.lang,
        "pass_rate": None,
        "correct": task.correct,
        "judged": task.judged,
        "domain": request.domain.value,
        "statement": request.statement,
        "answer": task.reference_answer,
        "raw_answer": task.raw_answer,
        "accepted": task.accepted,
        "scorer": task.scorer,
    }
    # only verl's own scorers read tests; ours reads the record
    tests: list[dict[str, str]] | None = None if task.code_problem is None else []
    messages = [{"role": message["role"], "content": message["content"]} for message in prompt.messages(request)]
    return ExportedProblem(row, number, messages, task.code_problem, tests, Asked(prompt, judges=task.judges))


def publish_model(recipe: TrainRecipe, out: Path) -> Path:
    """Copy verl's last checkpoint to the run's model."""
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


def has_experts(model: Path) -> bool:
    """Return whether the model is a mixture of experts."""
    try:
        table: Any = json.loads((model / "config.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise PolicyError(f"{model}: config.json is damaged ({error}); download the model again") from error
    return any((config or {}).get(name) for config in (table, table.get("text_config")) for name in EXPERT_COUNTS)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def processes_of(out: Path) -> list[int]:
    """Return the ids of the run's other processes, ascending."""
    variable, processes = f"{RECIPE_VARIABLE}=".encode(), set[int]()
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # another user's, or ended
            for entry in file.read_bytes().split(b"\0"):
                if entry.startswith(variable) and json.loads(entry[len(variable) :])["out"] == str(out):
                    processes.add(int(file.parent.name))
    return sorted(processes - {os.getpid()})


def end_leftovers(out: Path) -> None:
    """Kill an earlier start's processes; ``out`` is absolute and locked."""
    reported = False
    while left := processes_of(out):
        if not reported:
            _say(f"{out}: {len(left)} processes of an earlier start of this run are killed.")
            reported = True
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_LOOK_S)
