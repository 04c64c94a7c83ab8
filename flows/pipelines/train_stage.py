"""Training as a Prefect flow: a name around `flows.run.training.train`, and nothing else."""

from __future__ import annotations

from pathlib import Path

from prefect import flow

from flows.run.training import train


@flow(name="train-stage", persist_result=False)
def train_stage(
    recipe: Path | None, out: Path | None = None, overrides: list[str] | None = None, resume: bool = False
) -> Path:
    """Train a model: problems → rollouts → verdicts → rewards → gradient steps → checkpoints; return its folder.

    A rollout is what curation's records call an attempt.

    Args:
        recipe: the recipe's TOML file; not needed to resume.
        out: the run's folder; ``runs/NAME`` by default.
        overrides: settings changed, as ``key=value``.
        resume: go on from the last checkpoint in ``out``.
    """
    return train(recipe, out, overrides or [], resume=resume)
