"""Read a refresh's inputs, and choose what it judges again.

Inputs are the new policy, training's attempts, and the published set by shard. Invariant: the choice depends only on
the version's inputs.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import polars as pl

from curation.config import Band, LiveModel, Recipe, TorchModel, VllmModel
from curation.difficulty.early_stopping import AttemptOutcome, StoppingRule
from curation.difficulty.item_response import rollout_counts, with_domain_column
from curation.difficulty.refresh import READ, REFRESH_CHOICE, ROLLOUT_COUNTS, RefreshCause
from curation.difficulty.refresh_forecast import (
    FEW,
    Anchor,
    ForecastPart,
    RefreshForecast,
    anchor_lines,
    anchored,
    foresee_refresh,
)
from curation.prompts.asked import asked_settings
from curation.records import COUNTED_OUTCOMES, PASS_RATE, DropReason, Outcome, PolicyError, SourceError
from curation.sources.procedural import made_meta
from curation.storage.stages import read_shard, write_json
from flows.publish.versions import RefreshedRun, Version, decisions_on, scan_decisions, stored_versions
from flows.run.policies import load_model, open_policy
from flows.run.recipe import parse_recipe
from flows.run.run_folder import Run, stage_model
from flows.run.sampling_session import problem_domains
from flows.run.stage import Results, shard_counts

CHECKPOINT = "checkpoint"  # name of the judging model in a refresh's recipe
MODELS = ("", "model", "hf")  # folders of a checkpoint that may hold Hugging Face weights

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


FAR_WEAKER = 2.0  # logits below the set's policy from which a policy counts as broken
LEVELS = "levels.json"  # in a version's folder: each level's expected pass rate and drawn rows

DRAWN, RETIRED, WAITS = "drawn", "retired", "waits"
"""A level's expected pass rate is in the band, above or below it."""


@dataclass(frozen=True, slots=True)
class AnchorResult:
    """What the anchor shows, and what follows."""

    anchor: Anchor
    forecast: RefreshForecast

    @property
    def lines(self) -> list[str]:
        """Return it in words."""
        return [*anchor_lines(self.anchor), self.forecast.correction.sentence, self.forecast.sentence]

    def priors(self, shard: int, problems: pl.Series) -> pl.DataFrame:
        """Return the stopping priors of a shard's problems."""
        return self.forecast.shared.priors_of(shard, problems, self.forecast.threshold)


def anchor_result(
    parts: RefreshParts, own: pl.DataFrame, attempts: Mapping[str, Sequence[AttemptOutcome]], rule: StoppingRule
) -> AnchorResult | None:
    """Return the anchor's results; None if the verifier failed on all of it.

    Args:
        own: the policy's counts on the anchor.
        attempts: the anchor's, up to their stop by ``rule``.
    """
    parts = replace(parts, own=own.select(COUNTS))
    anchor = anchored(_met_counts(parts), parts.policy, parts.newest.policy)
    if anchor is None:
        return None
    return AnchorResult(anchor, foresee_refresh(anchor, parts, attempts, rule, parts.run.recipe.refresh.error_rate))


def _met_counts(parts: RefreshParts) -> pl.DataFrame:
    """Return counts on problems that the policy tried; on all if fewer than `FEW`."""
    met, tried = [], 0
    for part in parts:
        names = part.counts.filter((pl.col("policy") == parts.policy) & (pl.col("judged") > 0)).select("problem")
        met.append(part.counts.join(names, on="problem", how="semi", maintain_order="left"))
        tried += names["problem"].n_unique()
    return pl.concat(met if tried >= FEW else [part.counts for part in parts])


@dataclass(frozen=True, slots=True)
class LevelChoice:
    """A refresh's choice for a level; ``reserve`` counts unmeasured rows before the draw."""

    source: str
    level: int
    expected: float
    status: str
    drawn: int
    reserve: int

    @property
    def sentence(self) -> str:
        """Return the choice in words."""
        what = f"{self.drawn} of {self.reserve} rows in reserve drawn" if self.status == DRAWN else self.status
        return f"{self.source}, level {self.level}: expected pass rate {self.expected:.2f}, {what}"


def drawn_levels(parts: RefreshParts, anchor: AnchorResult | None, band: Band) -> pl.DataFrame:
    """Return the rows drawn of sources with a reserve as `REFRESH_CHOICE`, and write the levels' choices."""
    made = {source.name: source.made for source in parts.run.recipe.read_sources if source.made is not None}
    names = [name for name, how in made.items() if how.reserve_per_level]
    if not names:
        return REFRESH_CHOICE.to_frame()
    rows = pl.concat([_rows_of_levels(parts, index, names, anchor) for index in range(len(parts))])
    choices, drawn = [], [REFRESH_CHOICE.to_frame()]
    for (source, level), own in rows.sort("seed").group_by("source", "level", maintain_order=True):
        waiting, rates = own.filter("waits"), own["rate"].drop_nulls().to_list()
        rates += own["expected"].drop_nulls().head(1).to_list()
        expected = sum(rates) / max(1, len(rates))
        status = DRAWN if expected * band.attempts >= band.min_correct else WAITS
        status = RETIRED if expected > band.max_pass_rate else status
        taken = waiting.head(made[source].rows_per_level if status == DRAWN else 0)
        choices.append(LevelChoice(source, level, round(expected, 4), status, taken.height, waiting.height))
        drawn.append(taken.select("problem", why=pl.lit(RefreshCause.DRAWN.value)))
    choices.sort(key=lambda choice: (choice.source, choice.level))
    if choices:
        write_json(parts.run.place / LEVELS, {"levels": [asdict(choice) for choice in choices]})
    return pl.concat(drawn)


def _rows_of_levels(parts: RefreshParts, index: int, made: list[str], anchor: AnchorResult | None) -> pl.DataFrame:
    """Return a shard's procedural rows: problem, source, level, seed, waits, rate, expected.

    ``rate`` is measured; ``expected`` is the item response model's, for reserve.
    """
    problems = read_shard(parts.results.problems.folder, "kept", index, ["id", "source", "meta"])
    decided = parts.decisions(index, ("problem", "reason", "correct", "judged"))
    measured, expected = decided, pl.DataFrame(schema={"problem": pl.String, "expected": pl.Float64})
    if anchor is not None:
        mean = pl.col("correct") / (pl.col("correct") + pl.col("other"))
        expected = anchor.priors(index, problems["id"]).select("problem", expected=mean)
        measured = anchor.anchor.counts.filter(pl.col("policy") == anchor.anchor.policy)
    rate = pl.col("correct") / pl.col("judged")
    measured = measured.filter(pl.col("judged") > 0).select("problem", rate=rate)
    rows = problems.filter(pl.col("source").is_in(made)).with_columns(made_meta(made)).unnest("made")
    return (
        rows.select("source", "level", "seed", problem="id")
        .join(decided.select("problem", "reason"), on="problem", how="inner", maintain_order="left")
        .join(measured, on="problem", how="left", maintain_order="left")
        .join(expected, on="problem", how="left", maintain_order="left")
        .with_columns(waits=pl.col("reason").eq_missing(DropReason.RESERVED.value))
        .with_columns(expected=pl.when("waits").then("expected"))
    )
