"""Make the live demo's problems: ``python -m flows.demo.live.make_data``.

160 problems of the embedded family's training part, of all levels, each once; the references of 12 are wrong on
purpose (off by a little, as a slip of the pen would be), and `planted.jsonl` says which. Same seed, same files.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from random import Random

from training.embedded.problems import Split, supply

HERE = Path(__file__).parent
SEED, PROBLEMS, WRONG = 2026, 160, 12


def rows() -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """The rows of problems.jsonl, and those of planted.jsonl: which references are wrong, and the right answers."""
    exercises = list(itertools.islice(supply(SEED, Split.TRAIN), PROBLEMS))
    draw = Random(SEED)
    easy = [number for number, exercise in enumerate(exercises) if exercise.level <= 2]
    wrong = set(draw.sample(easy, WRONG))  # of problems that the model can solve: else nobody could tell
    problems: list[dict[str, object]] = []
    planted: list[dict[str, object]] = []
    for number, exercise in enumerate(exercises):
        given = exercise.answer + draw.choice((1, 2, 9, 10)) if number in wrong else exercise.answer
        meta = {"kind": exercise.kind, "level": exercise.level}
        problems.append({"problem": exercise.statement, "answer": str(given), "lang": exercise.lang, **meta})
        if number in wrong:
            planted.append({"problem": exercise.statement, "wrong": str(given), "right": str(exercise.answer)})
    return problems, planted


def main(folder: Path = HERE) -> None:
    """Write both files."""
    for name, table in zip(("problems.jsonl", "planted.jsonl"), rows(), strict=True):
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in table)
        (folder / name).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
