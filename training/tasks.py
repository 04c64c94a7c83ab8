"""What is trained on: problems with what their verifier needs, from a curated set or from the embedded supply.

Invariant: a problem's id names it everywhere; a set that holds one twice is refused.

Not here: which problem comes next (`training.course`), and judging (`training.judges`).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from curation.prompts.solving import FENCE
from curation.records import JUDGING, TEST, Domain, Prompted, SourceError
from training.embedded.problems import Split, supply
from training.recipe import CuratedData, Data, EmbeddedData

if TYPE_CHECKING:
    from curation.verify.programs.problem import CodeProblem

_NEEDED = ("id", "domain", "statement", "answer", "lang", "meta")


@dataclass(frozen=True, slots=True)
class Task:
    """A problem to train on: what is asked, and the reference answer or the program's tests.

    Example: ``Task(Prompted("5f0c…", "What is 2 + 2?", Domain.MATH, "en"), "4")``
    """

    asked: Prompted
    reference: str | None
    code: CodeProblem | None = None

    @property
    def id(self) -> str:
        """The problem's id."""
        return self.asked.id


def load_tasks(data: Data, split: Split, folder: Path) -> dict[str, Task]:
    """The tasks by id, in the order of their source.

    Args:
        data: a recipe's table.
        split: which part of the embedded problems; a curated set is taken as it is.
        folder: what relative paths refer to.

    Raises:
        SourceError: there is no such set, it is empty, or a row has no reference to judge by.
    """
    found = _embedded(data, split) if isinstance(data, EmbeddedData) else _curated(data, folder)
    tasks: dict[str, Task] = {}
    for task in found:
        if task.id in tasks:
            raise SourceError(f"problem {task.id} stands twice in the data; leave one of the sets out")
        tasks[task.id] = task
    if not tasks:
        raise SourceError("the data hold no problem; give another set")
    return tasks


def _embedded(data: EmbeddedData, split: Split) -> Iterator[Task]:
    for item in itertools.islice(supply(data.seed, split, kinds=data.kinds), data.problems):
        yield Task(Prompted(item.id, item.statement, Domain.MATH, item.lang), str(item.answer))


def _curated(data: CuratedData, folder: Path) -> Iterator[Task]:
    for name in data.folders:
        curated = folder / Path(name).expanduser()
        files = sorted((curated / "data").glob("*.parquet"))
        if not files:
            raise SourceError(f"{curated}: no data/*.parquet; give the folder of a curated set, such as RUN/curated.")
        programs: Mapping[str, CodeProblem] | None = None
        for file in files:
            for row in _read(file, _NEEDED).iter_rows(named=True):
                code = row["domain"] == Domain.CODE
                if code and programs is None:
                    programs = _programs(curated)
                yield _task(row, (programs or {}).get(row["id"]) if code else None, file)


def _task(row: Mapping[str, Any], program: CodeProblem | None, file: Path) -> Task:
    code = row["domain"] == Domain.CODE
    if code and program is None:
        raise SourceError(f"{file}: problem {row['id']} has no tests beside the data; publish its tests")
    if not code and row["answer"] is None:
        raise SourceError(f"{file}: problem {row['id']} has no reference answer; leave it out")
    details = {FENCE: str(json.loads(row["meta"] or "{}").get(FENCE, "python"))} if code else {}
    asked = Prompted(row["id"], row["statement"], Domain(row["domain"]), row["lang"] or "en", details)
    return Task(asked, row["answer"], program)


def _programs(curated: Path) -> dict[str, CodeProblem]:
    """What the code verifier needs, by problem; problems with a checker or a function of their own are refused."""
    from curation.verify.programs.problem import CPU_S, MEMORY_MB, CodeProblem, CodeTest

    rules = {
        row["problem"]: row
        for file in sorted((curated / "judging").glob("*.parquet"))
        for row in _read(file, JUDGING.names()).iter_rows(named=True)
    }
    tests: dict[str, list[CodeTest]] = {}
    for file in sorted((curated / "tests").glob("*.parquet")):
        for row in _read(file, TEST.names()).sort("problem", "index").iter_rows(named=True):
            if row["input"] is None or row["output"] is None:
                raise SourceError(f"{file}: test {row['index']} of problem {row['problem']} is not whole")
            tests.setdefault(row["problem"], []).append(CodeTest(row["input"].encode(), row["output"].encode()))
    made = {}
    for name, cases in tests.items():
        rule = rules.get(name, {})
        special = [key for key in ("function", "checker", "comparison") if rule.get(key) is not None]
        if special:
            raise SourceError(
                f"{curated}: problem {name} is judged by its own {special[0]}, which the trainer does not read; "
                "leave it out of the set"
            )
        limit, memory = rule.get("time_limit_s"), rule.get("memory_mb")
        made[name] = CodeProblem(name, tuple(cases), cpu_s=limit or CPU_S, memory_mb=memory or MEMORY_MB)
    return made


def _read(file: Path, columns: Sequence[str]) -> pl.DataFrame:
    try:
        return pl.read_parquet(file, columns=list(columns), glob=False)
    except (pl.exceptions.ColumnNotFoundError, pl.exceptions.ComputeError) as error:
        raise SourceError(f"{file}: no table of a curated set ({error}); publish the set again.") from error
