"""The loop as one flow: curate → train → refresh → train … until the set no longer changes or the rounds are done.

    prefect deploy flows/loop.py:loop

`goldilocks serve` runs the same flows one by one, each started by the event of the one before. Run one of the two.
"""

from pathlib import Path

from prefect import flow

from curation.records import ConfigError, StoreError
from flows.curate_code import curate_code
from flows.curate_math import curate_math
from flows.publish.versions import latest
from flows.refresh import refresh
from flows.run.recipe import load_recipe
from flows.serve.flow_runs import RETRIES, RETRY_S, run_name
from flows.serve.unfinished import REFRESHED, no_more_rounds, training_folder
from flows.train import train_stage

CURATION = {curate_math.name: curate_math, curate_code.name: curate_code}
"""Curation flows by a recipe's `flow`."""


@flow(name="loop", flow_run_name=run_name, retries=RETRIES, retry_delay_seconds=RETRY_S, persist_result=False)
def loop(recipe: Path, out: Path | None = None, overrides: list[str] | None = None) -> Path:
    """Curate by a recipe, then train and refresh by turns, and return the folder of the newest set.

    Args:
        recipe: the recipe's TOML file; its table `schedule` names the trainer's recipe and the rounds.
        out: the run folder; runs/NAME by default.
        overrides: settings changed, as ``key=value``.

    Raises:
        ConfigError: the recipe names no trainer.
    """
    settings = load_recipe(recipe, overrides or [])
    folder = (out or Path("runs") / settings.name).absolute()
    if settings.schedule.train is None:
        raise ConfigError(f"recipe {recipe}: the loop needs a trainer; name its recipe in schedule.train.")
    trainer = (recipe.parent / settings.schedule.train).absolute()
    CURATION[settings.flow](recipe, folder, overrides)
    while True:
        newest = latest(folder)
        if newest is None:
            raise StoreError(f"{folder} holds no published set; run the flow again.")
        stage = training_folder(folder, newest.number)
        if (stage / REFRESHED).exists() or no_more_rounds(folder, newest.number, settings.schedule.rounds):
            return folder / "curated"
        train_stage(folder, newest.number, trainer, settings.schedule.rounds)
        refresh(folder, stage / "model", stage / "attempts.jsonl")
