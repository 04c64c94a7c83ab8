"""Wrong labels: who is accused rightly, by the posterior, by the exact rule of votes, by plurality of strings.

    .venv/bin/python -m tests.benchmarks.bench_labels [--data FOLDER] [--half 1] [--seeds 3]

Recorded: FOLDER is the shared data's `attempts`, or any folder of JSON lines with ``id``, ``gold`` and ``samples`` =
[{model, answer}]. Wrong labels are planted; what was wrong before counts as sound. Settings of the model were chosen on
half 0 of the problems (by id, every other one); half 1 is scored. Precision, recall and share of sound labels accused,
over all seeds; *posterior* at the thresholds of `LabelSettings` for dropping and for the queue; *expected*: wrong labels
left, by the model, per planted one that is left. Then simulated policies; then `--audit`s of a set with known labels.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from curation.difficulty.label_trust import fit_labels, label_posteriors
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
from tests.places import SHARED_DATA

SHARES = (0.0, 0.02, 0.05, 0.1)
DROP, QUEUE = 0.9, 0.3


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, default=SHARED_DATA / "attempts")
    options.add_argument("--half", type=int, default=1)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--simulated", type=int, default=1000)
    chosen = options.parse_args()
    print(
        f"{'attempts of':38} planted | {'strings':>15} | {'votes':>15} | {'posterior: drop':>15} | {'queue':>15} | model  s"
    )
    for path in sorted(chosen.data.glob("*.jsonl")):
        answers = recorded(path)
        if not answers:
            continue
        half, best = only(answers, None, chosen.half), list(accuracies(answers))
        teams = {"all": best, "best 4": best[:4], "worst 4": best[-4:]}
        if len(best) > 8:
            teams["best 8"] = best[:8]
        for name, team in teams.items():
            if name == "all" or len(team) < len(best):
                table(f"{path.stem[:28]}, {name}", only(half, set(team)), chosen.seeds)
    if chosen.simulated:
        table("simulated: one policy, 16 each", simulated(chosen.simulated, {"7b": 0.0}, 16, chosen.half), chosen.seeds)
        table("simulated: one policy, 64 each", simulated(chosen.simulated, {"7b": 0.0}, 64, chosen.half), chosen.seeds)
        pair = {"7b": 0.0, "grader": 2.0}
        table("simulated: two policies, 16 each", simulated(chosen.simulated, pair, 16, chosen.half), chosen.seeds)
        four = {"a": 2.0, "b": 2.5, "c": 3.0, "d": 3.5}
        table("simulated: four strong, 8 each", simulated(chosen.simulated, four, 8, chosen.half), chosen.seeds)


def table(name: str, answers: Answers, seeds: int) -> None:
    """Print the lines of one set."""
    for share in SHARES:
        planted = [plant(answers, share, seed) for seed in range(seeds if share else 1)]
        began = time.process_time()
        found = [posterior(answers, labels) for labels in planted]
        seconds = (time.process_time() - began) / len(planted)
        cells = [
            score(planted, [accused_by_strings(answers, labels) for labels in planted], len(answers)),
            score(planted, [accused_by_votes(answers, labels) for labels in planted], len(answers)),
            *(
                score(planted, [{n for n, p in f.items() if p >= t} for f, _ in found], len(answers))
                for t in (DROP, QUEUE)
            ),
        ]
        shares = sum(s for _, s in found) / len(found)
        print(f"{name:38} {share:7.0%} | " + " | ".join(cells) + f" | {shares:.3f} {seconds:4.1f}", flush=True)


def posterior(answers: Answers, planted: PlantedLabels) -> tuple[dict[str, float], float]:
    votes = votes_of(answers, planted)
    model = fit_labels(votes)
    labels = label_posteriors(model, votes, votes["problem"].unique().sort())
    return dict(labels.select("problem", "wrong_label").iter_rows()), model.share


def score(planted: Sequence[PlantedLabels], accused: Iterable[set[str]], problems: int) -> str:
    """Return precision, recall and share of sound labels accused."""
    accused = list(accused)
    hits = sum(len(one & labels.wrong) for one, labels in zip(accused, planted, strict=True))
    made, wrong = sum(map(len, accused)), sum(len(labels.wrong) for labels in planted)
    sound = problems * len(planted) - wrong
    precision = f"{hits / made:.2f}" if made and wrong else " -- "
    recall = f"{hits / wrong:.2f}" if wrong else " -- "
    return f"{precision} {recall} {(made - hits) / sound:.3f}"


if __name__ == "__main__":
    main()
