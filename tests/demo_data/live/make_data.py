"""Make the live demo's problems: ``python -m tests.demo_data.live.make_data``.

160 problems of the embedded family's training part, each once: 100 as the family draws them, of all levels, and 60
more of levels 3 and 4, some of which the embedded model never solves before it is trained. The references of 12 are
wrong on purpose (off by a little, as a slip of the pen would be); `planted.jsonl` says which. Same seed, same files.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

import flows.demo.live
from training.embedded_model.problems import Split, generate_exercises

HERE = Path(flows.demo.live.__file__).parent

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Drawn:
    """How the problems are drawn: so many of all levels, so many ``harder`` ones, so many ``wrong`` references."""

    seed: int = 2026
    mixed: int = 100
    harder: int = 60
    wrong: int = 12


def rows(drawn: Drawn) -> tuple[list[Row], list[Row]]:
    """Return the rows of problems.jsonl and of planted.jsonl: which references are wrong, and the right answers."""
    source = generate_exercises(drawn.seed, Split.TRAIN)
    exercises = list(itertools.islice(source, drawn.mixed))
    draw = Random(drawn.seed)
    easy = [number for number, exercise in enumerate(exercises) if exercise.level <= 2]
    wrong = set(draw.sample(easy, drawn.wrong))  # of problems that the model can solve: else nobody could tell
    exercises += itertools.islice((exercise for exercise in source if exercise.level in (3, 4)), drawn.harder)
    problems: list[Row] = []
    planted: list[Row] = []
    for number, exercise in enumerate(exercises):
        answer = exercise.answer + draw.choice((1, 2, 9, 10)) if number in wrong else exercise.answer
        meta = {"kind": exercise.kind, "level": exercise.level}
        problems.append({"problem": exercise.statement, "answer": str(answer), "lang": exercise.lang, **meta})
        if number in wrong:
            planted.append({"problem": exercise.statement, "wrong": str(answer), "right": str(exercise.answer)})
    return problems, planted


def write(folder: Path, problems: Iterable[Row], planted: Iterable[Row]) -> None:
    """Write both files into a folder, which is created."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in (("problems.jsonl", problems), ("planted.jsonl", planted)):
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in table)
        (folder / name).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write(HERE, *rows(Drawn()))
