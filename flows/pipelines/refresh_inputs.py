"""Read a refresh's inputs: the new policy, and training's attempts."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import polars as pl

from curation.config import LiveModel, Recipe, TorchModel, VllmModel
from curation.difficulty import refresh
from curation.prompts.asked import asked_settings
from curation.records import COUNTED_OUTCOMES, Outcome, PolicyError, SourceError
from flows.run.model_files import load_model
from flows.run.recipe import parse_recipe
from flows.run.run_folder import Run, stage_model

CHECKPOINT = "checkpoint"
"""Name of the judging model in a refresh's recipe."""

MODELS = ("", "model", "hf")
"""Folders of a checkpoint that may hold Hugging Face weights."""


def with_policy(run: Run, path: Path) -> tuple[Recipe, Path]:
    """Return the recipe of a refresh, and the base of the policy's paths.

    The last stage gets the policy, and its band the refresh's `max_pass_rate` if higher.

    Raises:
        ConfigError, PolicyError: the policy is missing or invalid.
    """
    part = run.parts[-1]
    table = run.recipe.model_dump()
    table["grader"] = None  # it is trained; the stage names its model
    band = table[part]["band"]
    band["max_pass_rate"] = max(band["max_pass_rate"], run.recipe.refresh.max_pass_rate)
    name = CHECKPOINT
    while name in table["models"]:
        name += "-"
    table[part]["model"] = name
    if path.is_dir():
        table["models"][name] = checkpoint_table(path, stage_model(run.recipe, part))
        return parse_recipe(table, str(path)), path.absolute().parent
    settings, home = load_model(path)
    table["models"][name] = settings.model_dump()
    return parse_recipe(table, str(path)), home


def checkpoint_table(path: Path, previous: object) -> dict[str, Any]:
    """Return a checkpoint's folder as a model's table.

    Prompt, tags and examples are those of its `asked.json`, else of a live ``previous`` policy, whose decoding is kept.
    The engine is vLLM if installed, unless ``previous`` uses torch.
    """
    home = next((path / name for name in MODELS if (path / name / "config.json").is_file()), None)
    if home is None:
        raise PolicyError(f"--policy {path}: the folder holds no model (no config.json); name a checkpoint.")
    use_vllm = importlib.util.find_spec("vllm") is not None and not isinstance(previous, TorchModel)
    kind: type[LiveModel] = VllmModel if use_vllm else TorchModel
    fields = set(kind.model_fields) if isinstance(previous, kind) else {"prompt", "thinking", "examples", "decoding"}
    shared = previous.model_dump(include=fields - {"model", "revision"}) if isinstance(previous, LiveModel) else {}
    return {**shared, **asked_settings(home), "kind": "vllm" if use_vllm else "torch", "model": str(home.absolute())}


def read_trained(path: Path) -> pl.DataFrame:
    """Read training's attempts as `curation.difficulty.refresh.ROLLOUT_COUNTS`.

    Args:
        path: .jsonl or .parquet, a row per problem and step, or per attempt with ``outcome``
            (as in ``attempts.jsonl``); null counts as not correct.

    Raises:
        SourceError: the file is missing or unreadable, or lacks a column.
    """
    try:
        frame = pl.read_parquet(path, glob=False) if path.suffix == ".parquet" else pl.read_ndjson(path)
        if "outcome" in frame.columns:
            judged = frame.filter(
                pl.col("outcome").is_null() | pl.col("outcome").is_in([outcome.value for outcome in COUNTED_OUTCOMES])
            )
            right = (pl.col("outcome") == Outcome.CORRECT.value).fill_null(False)
            frame = judged.group_by("problem", "step", maintain_order=True).agg(correct=right.sum(), judged=pl.len())
        return frame.select(refresh.ROLLOUT_COUNTS.names()).cast(refresh.ROLLOUT_COUNTS)
    except FileNotFoundError as error:
        raise SourceError(f"--attempts {path}: there is no such file.") from error
    except pl.exceptions.PolarsError as error:
        columns = ", ".join(refresh.ROLLOUT_COUNTS.names())
        raise SourceError(f"--attempts {path}: cannot be read with the columns {columns} ({error}).") from error
