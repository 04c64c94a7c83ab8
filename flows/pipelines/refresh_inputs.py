"""Read a refresh's inputs: the new policy, training's attempts, and the published set by shard."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import polars as pl

from curation.config import LiveModel, Recipe, TorchModel, VllmModel
from curation.difficulty.item_response import rollout_counts, with_domain_column
from curation.difficulty.refresh import READ, ROLLOUT_COUNTS
from curation.difficulty.refresh_forecast import ForecastPart
from curation.prompts.asked import asked_settings
from curation.records import COUNTED_OUTCOMES, PASS_RATE, Outcome, PolicyError, SourceError
from curation.storage.stages import read_shard
from flows.publish.versions import RefreshedRun, Version, decisions_on, scan_decisions, stored_versions
from flows.run.model_files import load_model
from flows.run.policies import open_policy
from flows.run.recipe import parse_recipe
from flows.run.run_folder import Run, stage_model
from flows.run.stage import Results, shard_counts
from flows.stages.attempts import problem_domains

CHECKPOINT = "checkpoint"
"""Name of the judging model in a refresh's recipe."""

MODELS = ("", "model", "hf")
"""Folders of a checkpoint that may hold Hugging Face weights."""

COUNTS = ["problem", "policy", "correct", "judged"]


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
        return frame.select(ROLLOUT_COUNTS.names()).cast(ROLLOUT_COUNTS)
    except FileNotFoundError as error:
        raise SourceError(f"--attempts {path}: there is no such file.") from error
    except pl.exceptions.PolarsError as error:
        columns = ", ".join(ROLLOUT_COUNTS.names())
        raise SourceError(f"--attempts {path}: cannot be read with the columns {columns} ({error}).") from error


@dataclass(frozen=True)
class RefreshParts:
    """A published set's problems by shard, with all that is known about them.

    Args:
        run: the refresh's.
        results: of the pipeline's filters and decisions.
        newest: the version before the refresh's.
        all_trained: `curation.difficulty.refresh.ROLLOUT_COUNTS` rows since that version.
        own: the new policy's counts on the anchor.
    """

    run: RefreshedRun
    results: Results
    newest: Version
    all_trained: pl.DataFrame
    own: pl.DataFrame = field(default_factory=lambda: PASS_RATE.to_frame().select(COUNTS))

    def __iter__(self) -> Iterator[ForecastPart]:
        return (ForecastPart(self.decisions(at), self._counts(at)) for at in range(len(self)))

    def __len__(self) -> int:
        return len(self._starts) - 1

    @cached_property
    def policy(self) -> str:
        """Return the judging policy, as ``model@revision``."""
        return open_policy(stage_model(self.run.recipe, self.run.parts[-1]), self.run.recipe_folder).key.policy

    def decisions(self, index: int, columns: tuple[str, ...] = READ, number: int | None = None) -> pl.DataFrame:
        """Return a version's decisions on a shard's problems, in order; by default the newest version's."""
        table = scan_decisions(self.run.folder, self.newest.number if number is None else number).select(columns)
        return decisions_on(table, self._problems(index)["id"], self._starts[index])

    def _counts(self, index: int) -> pl.DataFrame:
        """Return the largest counts of all stages and versions, and those of the anchor and of training since.

        They have a column ``domain`` if there are several.
        """
        decided = [read_shard(result.folder, "decisions", index, COUNTS) for result in self.results.decisions]
        decided += [self.decisions(index, tuple(COUNTS), one.number) for one in stored_versions(self.run.folder)]
        names = self._problems(index).select(problem="id")
        further = [part.join(names, on="problem", how="semi") for part in (self._rollouts, self.own)]
        rows = pl.concat([part.select(COUNTS) for part in decided])
        judged = rows.sort(COUNTS).unique(COUNTS[:2], keep="last", maintain_order=True)
        counts = pl.concat([judged, *(part.select(COUNTS).cast(judged.schema) for part in further)])
        return with_domain_column(counts, self._domains(index)) if self._has_domains else counts

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate(shard_counts(self.results.problems.folder), initial=0))

    @cached_property
    def _rollouts(self) -> pl.DataFrame:
        trained = self.all_trained
        if trained.height:
            names = pl.concat([self._problems(index)["id"] for index in range(len(self))])
            trained = trained.filter(pl.col("problem").is_in(names.implode()))
        return rollout_counts(trained)

    @cached_property
    def _has_domains(self) -> bool:
        return len({name for index in range(len(self)) for name in self._domains(index)["domain"].unique()}) > 1

    def _domains(self, index: int) -> pl.DataFrame:
        made = self.run.made_sources
        return problem_domains(self._problems(index, "id", "source", *(["meta"] if made else [])), made)

    def _problems(self, index: int, *columns: str) -> pl.DataFrame:
        return read_shard(self.results.problems.folder, "kept", index, columns or ("id",))
