"""`goldilocks rejudge` of a training run: its kept attempts by the verifier of today, and what changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from curation.policies.excerpt import excerpt
from curation.records import ConfigError
from flows.run.run_folder import open_run
from flows.run.terminal import SafeConsole
from flows.run.training import read_run
from flows.run.training_status import is_training
from training.rollouts.rejudging import CHANGES, ChangedVerdict, RejudgedRun, outcome_changes, rejudge

_REJUDGED = re.compile(r"thinking|rewards\.\w+(\.\w+)*")

EXAMPLES = 20
"""Changed verdicts that are printed; all of them are written to DIR/rejudged.jsonl."""


def rejudge_training(folder: Path, overrides: Sequence[str]) -> None:
    """Judge the attempts of a training run again, and print what changed.

    Raises:
        ConfigError: it is a curation run, or an override concerns how the attempts were made; these are not made again.
    """
    if not is_training(folder):
        name = open_run(folder.absolute()).recipe.name
        raise ConfigError(
            f"{folder} holds a run of recipe `{name}`: `goldilocks run` judges its attempts by today's verifier, and "
            f"`goldilocks diff {folder}@1 {folder}@2` shows what changed, and why."
        )
    for override in overrides:
        if not _REJUDGED.fullmatch(override.partition("=")[0].strip()):
            raise ConfigError(
                f"--set {override}: rejudge of a training run changes rewards.* and thinking only; "
                "its attempts are not made again."
            )
    folder = folder.absolute()
    recipe, recipe_folder = read_run(folder, overrides)
    result = rejudge(recipe, recipe_folder, folder)
    console = SafeConsole()
    for line in rejudged_lines(result):
        console.print(line)
    for change in result.changes[:EXAMPLES]:
        console.print(_change_line(change))
    if len(result.changes) > EXAMPLES:
        console.print(f"… and {len(result.changes) - EXAMPLES:,} more")
    if result.changes:
        console.print(f"all of them: {folder / CHANGES}")


def rejudged_lines(result: RejudgedRun) -> list[str]:
    """Return what judging again came to, in lines of text."""
    names = (" and ".join(sorted(verifiers)) or "none" for verifiers in (result.verifiers_before, result.verifiers))
    changed = f"{len(result.changes):,} of {result.attempts:,} attempts changed"
    lines = [f"verifier {' → '.join(names)}: {changed}"]
    if result.left_out:
        lines.append(f"  {result.left_out:,} attempts at problems that the data no longer hold were left out")
    lines += [f"  {was} → {now}: {count:,}" for (was, now), count in outcome_changes(result).most_common()]
    by_place = sorted(result.correct.items(), key=lambda pair: (pair[0][0], pair[0][1] or 0))
    for (purpose, step), (attempts, before, after) in by_place:
        place = purpose if step is None else f"{purpose} at step {step}"
        lines.append(f"  {place}: {before:,} → {after:,} of {attempts:,} attempts are correct")
    return lines


def _change_line(change: ChangedVerdict) -> str:
    before = f"{change.outcome_before or 'format'} ({excerpt(change.method_before, 60)})"
    after = f"{change.outcome or 'format'} ({excerpt(change.method, 60)})"
    answer = change.answer if change.answer is not None else change.answer_before
    against = f"{excerpt(answer, 80)} against {excerpt(change.reference, 80)}"
    place = f"{change.purpose}, step {change.step}, problem {change.problem}, attempt {change.index}"
    return f"{place}: {against} was {before}, is {after}"
