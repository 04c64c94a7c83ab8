"""The plan that lies in a run folder, and what its stages took: planned beside actual."""

from __future__ import annotations

import json
from dataclasses import dataclass

from curation.difficulty.planning import CostEstimate, StagePlan, read_plan
from curation.records import StoreError
from curation.storage.attempts import AttemptStore
from curation.storage.stages import read_manifest, read_shard
from flows.run.run_folder import Run
from flows.stages.attempts import attempt_key, attempts_of

PLAN = "plan.json"
"""In the run folder: the plan of each stage, as `curation.difficulty.planning.StagePlan.row` gives it."""


@dataclass(frozen=True, slots=True)
class ActualCost:
    """What a finished stage took: attempts that count, their tokens, and seconds of sampling but for the pilot's."""

    attempts: int
    tokens: int
    seconds: float


def stored_plan(run: Run) -> dict[str, StagePlan]:
    """Return the plan that lies in a run folder, by stage; empty where nobody planned."""
    path = run.folder / PLAN
    if not path.exists():
        return {}
    try:
        return {plan.stage: plan for plan in map(read_plan, json.loads(path.read_text(encoding="utf-8")))}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path} is damaged ({error}); `goldilocks plan` writes it again.") from error


def actual_cost(run: Run, part: str) -> ActualCost | None:
    """Return the cost of a finished stage of attempts; None where it is not finished.

    Attempts and tokens are those of all attempts that count, whoever had them made: a pilot, an anchor, an earlier run.
    """
    folder = attempts_of(part).folder_in(run)
    manifest = read_manifest(folder)
    if manifest is None:
        return None
    store = AttemptStore(run.folder / "attempts", attempt_key(folder), create=False)
    tokens = 0
    for index in range(manifest.shards):
        counted = read_shard(folder, "verdicts", index).select("problem", "index")
        attempts = store.read(counted["problem"].unique().to_list(), ["problem", "index", "tokens"])
        tokens += int(attempts.join(counted, on=["problem", "index"], how="semi")["tokens"].sum() or 0)
    return ActualCost(manifest.notes["counted"], tokens, manifest.notes["ms"] / 1000)


def estimate_text(estimate: CostEstimate | None) -> str:
    """Return an estimate with its 95 % interval, where it has one."""
    if estimate is None:
        return "unknown"
    if estimate.low == estimate.high:
        return short_number(estimate.mean)
    return f"{short_number(estimate.mean)} ({short_number(estimate.low)} to {short_number(estimate.high)})"


def short_number(value: float) -> str:
    """Return a number in three or four digits: 4.21 G, 233 k, 64."""
    for size, unit in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def compare_with_plan(run: Run) -> list[str]:
    """Return one line per planned stage that has run: what was planned, and what it took."""
    lines = []
    for part, plan in stored_plan(run).items():
        actual = actual_cost(run, part)
        if actual is not None:
            attempts, tokens = estimate_text(plan.expected.attempts), estimate_text(plan.expected.tokens)
            made, written = short_number(actual.attempts), short_number(actual.tokens)
            spent = f"{made} attempts and {written} tokens in {actual.seconds:,.0f} s"
            lines.append(f"{part}: planned {attempts} attempts and {tokens} tokens; took {spent}")
    return lines
