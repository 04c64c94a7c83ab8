"""The training flows: by a recipe as it is, and the next stage of training on a curated set.

prefect deploy flows/train.py:train
"""

from contextlib import ExitStack
from pathlib import Path

from prefect import flow, get_run_logger

from curation.records import StoreError
from curation.storage.locks import lock_folder
from flows.run.run_folder import open_run
from flows.run.training import default_folder, start_from, train_apart
from flows.serve.flow_runs import RETRIES, RETRY_S, announce_checkpoint, gpus, run_name
from flows.serve.unfinished import REFRESHED, no_more_rounds, trained_stages, training_data, training_folder


@flow(name="train", flow_run_name="{recipe.stem}", retries=RETRIES, retry_delay_seconds=RETRY_S, persist_result=False)
def train(recipe: Path, out: Path | None = None, overrides: list[str] | None = None) -> Path:
    """Train by a recipe, or resume the run that its folder holds, and return the model's folder.

    Args:
        recipe: the training recipe's TOML file.
        out: the run folder; runs/NAME by default.
        overrides: settings changed, as ``key=value``.
    """
    folder = (out or default_folder(recipe, overrides or [])).absolute()
    resumed = (folder / "run.json").exists()
    return train_apart(recipe, folder, [] if resumed else overrides or [], resume=resumed)


@flow(name="train-stage", flow_run_name=run_name, retries=RETRIES, retry_delay_seconds=RETRY_S, persist_result=False)
def train_stage(folder: Path, version: int, recipe: Path, rounds: int | None = None) -> None:
    """Train the next stage on a set's newest version, from the model of the stage before, and announce its model.

    Args:
        folder: the run folder of the set.
        version: of the set; the stage is named by it.
        recipe: the trainer's recipe.
        rounds: no stage is trained after this many.
    """
    log, out = get_run_logger(), training_folder(folder, version)
    if no_more_rounds(folder, version, rounds):
        log.info("%d stages were trained, and no more are asked for", len(trained_stages(folder)))
        return
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_folder(folder / "training"))
        except StoreError as busy:
            log.info("passed over: %s", busy)
            return
        stages, overrides = trained_stages(folder), [training_data(folder)]
        if stages and stages[-1] != out:
            overrides.append(start_from(recipe, stages[-1] / "model"))
        if out not in stages:
            stack.enter_context(gpus(open_run(folder)))
            resumed = (out / "run.json").exists()
            train_apart(recipe, out, [] if resumed else overrides, resume=resumed)
    if not (out / REFRESHED).exists():
        announce_checkpoint(folder, version)
