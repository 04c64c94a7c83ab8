"""Wrong labels: who is accused rightly, by the posterior, by the exact rule of votes, by plurality of strings.

    .venv/bin/python -m tests.benchmarks.bench_labels [--data FOLDER] [--half 1] [--seeds 3] [--only odyssey]

Recorded: FOLDER is the shared data's `attempts`, or any folder of JSON lines with ``id``, ``gold`` and ``samples`` =
[{model, answer}]. Wrong labels are planted; what was wrong before counts as sound. Settings of the model were chosen on
half 0 of the problems (every other one, by id); half 1 is scored, or all of them (`--half -1`). Each cell:
precision, recall, and the share of sound labels accused, over all seeds;
*drop* and *queue* at the thresholds of `LabelSettings`, *.8* at that one; *checked*: as
a run decides, by votes where planting shows that they do better (`curation.difficulty.label_trust`); *R .8*: the best
precision at a recall of .8; *share*: of wrong labels, as the model learnt it. Then simulated policies. Last:
audits of what is left; in how many of 100 draws the interval covers the truth.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from curation.config import LabelSettings
from curation.difficulty.label_trust import accused_by_votes as votes_of_all
from curation.difficulty.label_trust import check_by_planting, fit_labels, label_posteriors
from curation.difficulty.label_votes import ANSWERS, VoteParts
from curation.publish.audit import estimate_audit
from tests.benchmarks.labelled_attempts import (
    Answers,
    PlantedLabels,
    accuracies,
    accused_by_strings,
    accused_by_votes,
    only,
    plant,
    recorded,
    simulated,
    votes_of,
)
from tests.curation.publish.test_audit import draw_audit
from tests.places import SHARED_DATA

SHARES = (0.0, 0.02, 0.05, 0.1)
SETTINGS = LabelSettings()
THRESHOLDS = (SETTINGS.drop_above, 0.8, SETTINGS.queue_above)
AUDITS, DRAWS = (60, 120), 100


@dataclass(frozen=True, slots=True)
class Found:
    """What the model says of planted labels."""

    chances: dict[str, float]
    share: float
    decided: set[str]


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, default=SHARED_DATA / "attempts")
    options.add_argument("--half", type=int, default=1)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--only", default="", help="sets whose name holds these letters")
    options.add_argument("--problems", type=int, default=1000, help="simulated ones")
    chosen = options.parse_args()
    heads = ("strings", "votes", "posterior: drop", ".8", "queue", "checked")
    print(f"{'attempts of':40} planted | " + " | ".join(f"{head:>15}" for head in heads) + " | R .8 share     s")
    sets = dict(recorded_sets(chosen.data, chosen.half))
    sets |= simulated_sets(chosen.problems, max(0, chosen.half))
    sets = {name: answers for name, answers in sets.items() if chosen.only.lower() in name.lower()}
    for name, answers in sets.items():
        for share in SHARES:
            print(f"{name:40} {share:7.0%} | {line(answers, share, chosen.seeds)}", flush=True)
    print(f"\n{'audits of':40} planted  left   rows covered  width  error  (simple random draws)")
    for name, answers in sets.items():
        for size in AUDITS:
            print(f"{name:40} {0.05:7.0%}  {audits(answers, 0.05, size)}", flush=True)


def recorded_sets(folder: Path, half: int) -> Iterable[tuple[str, Answers]]:
    """Yield the recorded sets: of all policies, of the best and the worst."""
    for path in sorted(folder.glob("*.jsonl")):
        answers = recorded(path)
        if not answers:
            continue
        best = list(accuracies(answers))
        teams = {"all": best, "best 8": best[:8], "best 4": best[:4], "worst 4": best[-4:]}
        for name, team in teams.items():
            if name == "all" or len(team) < len(best):
                yield f"{path.stem[:28]}, {name}", only(answers, set(team), half)


def simulated_sets(problems: int, seed: int) -> dict[str, Answers]:
    """Return the simulated sets: name, and answers."""
    pair, four = {"7b": 1.0, "grader": 2.5}, {"a": 2.0, "b": 2.5, "c": 3.0, "d": 3.5}
    return {
        "simulated, one 7B, 16 each": simulated(problems, {"7b": 1.5}, 16, seed),
        "simulated, one 7B, 64 each": simulated(problems, {"7b": 1.5}, 64, seed),
        "simulated, 7B and grader, 16 each": simulated(problems, pair, 16, seed),
        "simulated, four strong, 8 each": simulated(problems, four, 8, seed),
    }


def line(answers: Answers, share: float, seeds: int) -> str:
    """Return the cells of one share of planted labels."""
    planted = [plant(answers, share, seed) for seed in range(seeds if share else 1)]
    began = time.process_time()
    found = [posterior(answers, labels) for labels in planted]
    seconds = (time.process_time() - began) / len(planted)
    accused = [
        [accused_by_strings(answers, labels) for labels in planted],
        [accused_by_votes(answers, labels) for labels in planted],
        *([{name for name, chance in one.chances.items() if chance >= at} for one in found] for at in THRESHOLDS),
        [one.decided for one in found],
    ]
    cells = " | ".join(score(planted, sets, len(answers)) for sets in accused)
    learnt = sum(one.share for one in found) / len(found)
    return f"{cells} | {at_recall(planted, found):>4} {learnt:.3f} {seconds:5.1f}"


def posterior(answers: Answers, planted: PlantedLabels) -> Found:
    """Return the probabilities of wrong labels."""
    votes = votes_of(answers, planted)
    model = fit_labels(votes)
    labels = label_posteriors(model, votes, votes["problem"].unique().sort())
    accused = set(labels.filter(pl.col("wrong_label") >= SETTINGS.drop_above)["problem"])
    voters = votes["policy"].unique().to_list()
    with TemporaryDirectory() as folder:
        stored = VoteParts([(votes, ANSWERS.to_frame())], Path(folder))
        check = check_by_planting(stored, voters, SETTINGS.drop_above, seed=99, start=model)
    if check is not None and not check.posterior_holds:
        accused = votes_of_all(votes, voters)
    return Found(dict(labels.select("problem", "wrong_label").iter_rows()), model.share, accused)


def score(planted: Sequence[PlantedLabels], accused: Sequence[set[str]], problems: int) -> str:
    """Return precision, recall and share of sound labels accused."""
    hits = sum(len(one & labels.wrong) for one, labels in zip(accused, planted, strict=True))
    made, wrong = sum(map(len, accused)), sum(len(labels.wrong) for labels in planted)
    precision = f"{hits / made:.2f}" if made and wrong else " -- "
    recall = f"{hits / wrong:.2f}" if wrong else " -- "
    return f"{precision} {recall} {(made - hits) / (problems * len(planted) - wrong):.3f}"


def at_recall(planted: Sequence[PlantedLabels], found: Sequence[Found], recall: float = 0.8) -> str:
    """Return the best precision of a threshold with at least that recall."""
    pairs = [
        (chance, name in labels.wrong)
        for one, labels in zip(found, planted, strict=True)
        for name, chance in one.chances.items()
    ]
    hits = np.cumsum([wrong for _, wrong in sorted(pairs, key=lambda pair: -pair[0])])
    if not hits[-1]:
        return "--"
    return f"{(hits / np.arange(1, len(hits) + 1))[hits >= recall * hits[-1]].max():.2f}"


def audits(answers: Answers, share: float, size: int) -> str:
    """Return how often audits of what is not dropped cover the truth, and how near they come."""
    planted = plant(answers, share, 0)
    left = {name: chance for name, chance in posterior(answers, planted).chances.items() if chance < THRESHOLDS[0]}
    labels = pl.DataFrame({"problem": list(left), "wrong_label": list(left.values())})
    truth, covered, widths, errors = len(planted.wrong & left.keys()) / len(left), 0, [], []
    for draw in range(DRAWS):
        strata = draw_audit(labels, size, draw)
        verdicts = {name: name in planted.wrong for stratum in strata for name in stratum.drawn}
        estimate = estimate_audit(strata, verdicts)
        assert estimate is not None
        covered += estimate.low <= truth <= estimate.high
        widths.append(estimate.high - estimate.low)
        errors.append(estimate.share - truth)
    simple = (truth * (1 - truth) / size * (1 - size / len(left))) ** 0.5
    spread = float(np.sqrt(np.mean(np.square(errors))))
    return f"{truth:.3f}  {size:5} {covered:4} of {DRAWS}  {np.mean(widths):.3f}  {spread:.4f} ({simple:.4f})"


if __name__ == "__main__":
    main()
