"""Curated sets in the schemas that other trainers read.

    verl          data_source, prompt, ability, reward_model {style, ground_truth}, extra_info        parquet
    trl           prompt, solution (code: tests)                                                      parquet
    open-r1       problem, prompt, solution (code: verification_info {language, test_cases})          parquet
    verifiers     prompt, answer, info (JSON), task: for verifiers and prime-rl                       parquet
    nemo-rl       input, output; the system prompt beside it, for its ``system_prompt_file``          jsonl
    areal         messages, answer (code: tests)                                                      parquet
    open-instruct messages, ground_truth, dataset                                                     parquet

Prompts are those that attempts are sampled with here (`curation.prompts.SOLVE`). Every row keeps the problem's id, its
source, its group and its measured pass rate, where the trainer allows further columns.

The tests of programs are read from ``tests/*.parquet`` beside ``data/``, in the `TEST` schema. They are what a program
reads and must print; problems that ask for a function or need a checker (``judging/*.parquet``) are refused. Which
language a program is asked for in stands in the problem's ``meta`` under `FENCE`; python where it does not.

Invariants: one row in, one row out, in the set's order, or an error that names the row: nothing is left out silently.
Files are written aside and renamed. ``split`` is always train.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from curation.prompts import SOLVE
from curation.prompts.solving import FENCE
from curation.records import JUDGING, TEST, Domain, Prompted, SourceError
from curation.store import replacing, write_aside, write_parquet

Row = dict[str, Any]

NEEDED = ("id", "group", "domain", "statement", "answer", "lang", "source", "pass_rate")
"""Columns of a curated set that formats read."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: rows in ``file``, and ``system_prompt`` where the trainer wants it in a file of its own."""

    file: Path
    rows: int
    system_prompt: Path | None = None


@dataclass(frozen=True, slots=True)
class _Problem:
    """A row of the set with what all formats need of it; ``tests`` is None for math."""

    row: Row
    number: int
    messages: list[dict[str, str]]
    tests: list[dict[str, str]] | None
    program: str  # language of the program asked for; "" for math

    @property
    def statement(self) -> str:
        return str(self.row["statement"])

    @property
    def answer(self) -> str:
        return str(self.row["answer"])

    @property
    def about(self) -> Row:
        """Where the problem comes from and how hard it was found to be."""
        return {name: self.row[name] for name in ("id", "group", "source", "lang", "pass_rate")}

    @property
    def columns(self) -> Row:
        """The same as columns of a table; the group's name is a keyword in too many places."""
        return {("problem_group" if name == "group" else name): value for name, value in self.about.items()}

    def in_and_out(self) -> str:
        """Tests as the JSON object of two lists that verl's scorers read."""
        tests = self.tests or []
        return _json({"inputs": [test["input"] for test in tests], "outputs": [test["output"] for test in tests]})


def _verl(problem: _Problem) -> Row:
    # verl picks its scorer by data_source and raises on one it does not know: that of taco runs tests, that of
    # lighteval/MATH reads \boxed{}
    code = problem.tests is not None
    truth = problem.in_and_out() if code else problem.answer
    return {
        "data_source": "taco" if code else "lighteval/MATH",
        "prompt": problem.messages,
        "ability": "code" if code else "math",
        "reward_model": {"style": "rule", "ground_truth": truth},
        "extra_info": {"split": "train", "index": problem.number, **problem.about},
    }


def _trl(problem: _Problem) -> Row:
    # its accuracy_reward reads the solution as LaTeX
    tests = problem.in_and_out() if problem.tests is not None else None
    solution = None if problem.tests is not None else _boxed(problem.answer)
    return {"prompt": problem.messages, "solution": solution, "tests": tests, **problem.columns}


def _open_r1(problem: _Problem) -> Row:
    verification = None
    if problem.tests is not None:
        cases = [{**test, "type": "stdin_stdout"} for test in problem.tests]
        verification = {"language": problem.program, "test_cases": cases}
    return {
        "problem": problem.statement,
        "prompt": problem.messages,
        "solution": None if problem.tests is not None else _boxed(problem.answer),
        "verification_info": verification,
        **problem.columns,
    }


def _verifiers(problem: _Problem) -> Row:
    about = {**problem.about, **({"tests": problem.tests} if problem.tests is not None else {})}
    return {
        "prompt": problem.messages,
        "answer": "" if problem.tests is not None else problem.answer,
        "info": _json(about),
        "task": "math" if problem.tests is None else "code",
    }


def _nemo_rl(problem: _Problem) -> Row:
    output = problem.in_and_out() if problem.tests is not None else problem.answer
    return {"input": problem.messages[-1]["content"], "output": output, **problem.columns}


def _areal(problem: _Problem) -> Row:
    tests = problem.in_and_out() if problem.tests is not None else None
    return {
        "messages": problem.messages,
        "answer": None if problem.tests is not None else problem.answer,
        "tests": tests,
        **problem.columns,
    }


def _open_instruct(problem: _Problem) -> Row:
    # `dataset` names its verifier
    code = problem.tests is not None
    return {
        "messages": problem.messages,
        "ground_truth": _json(problem.tests) if code else problem.answer,
        "dataset": "code_stdio" if code else "math",
        **problem.columns,
    }


FORMATS: Mapping[str, Callable[[_Problem], Row]] = {
    "verl": _verl,
    "trl": _trl,
    "open-r1": _open_r1,
    "verifiers": _verifiers,
    "nemo-rl": _nemo_rl,
    "areal": _areal,
    "open-instruct": _open_instruct,
}
"""Names for ``goldilocks export --format``."""

_MESSAGES = pl.List(pl.Struct({"role": pl.String, "content": pl.String}))
_VERIFICATION = pl.Struct(
    {
        "language": pl.String,
        "test_cases": pl.List(pl.Struct({"input": pl.String, "output": pl.String, "type": pl.String})),
    }
)
_TYPES: Mapping[str, Any] = {
    "prompt": _MESSAGES,
    "messages": _MESSAGES,
    "verification_info": _VERIFICATION,
    "solution": pl.String,
    "tests": pl.String,
    "answer": pl.String,
    "pass_rate": pl.Float64,
    "source": pl.String,
    "lang": pl.String,
}
"""Columns that may be null in every row, or whose type must not depend on the first one."""


def export_set(curated: Path, form: str, out: Path) -> Exported:
    """Write a curated set for another trainer: ``out/train.parquet``, or ``out/train.jsonl`` for nemo-rl.

    Args:
        curated: folder with ``data/*.parquet`` in the `CURATED` schema.
        form: one of `FORMATS`.
        out: folder to write to; made where it is missing.

    Raises:
        SourceError: no such format, no set there, or a problem that the format cannot carry.
    """
    if form not in FORMATS:
        raise SourceError(f"format {form!r} is not known; known are {', '.join(FORMATS)}.")
    files = sorted((curated / "data").glob("*.parquet"))
    if not files:
        raise SourceError(f"{curated}: no data/*.parquet; give the folder of a curated set, such as RUN/curated.")
    frame = pl.concat([_read(file) for file in files])
    if frame.is_empty():
        raise SourceError(f"{curated}: the set holds no problems; there is nothing to export.")
    tests = _tests(curated)
    _refuse_special_judging(curated, set(frame["id"]))
    rows = [
        FORMATS[form](_problem(row, number, tests, curated)) for number, row in enumerate(frame.iter_rows(named=True))
    ]
    if form == "nemo-rl":
        file = out / "train.jsonl"
        with replacing(file) as handle:
            handle.writelines((_json(row) + "\n").encode() for row in rows)
        prompt = out / "system_prompt.txt"
        write_aside(prompt, SOLVE.system)
        return Exported(file, len(rows), prompt)
    file = out / "train.parquet"
    known = {name: dtype for name, dtype in _TYPES.items() if name in rows[0]}
    write_parquet(file, pl.DataFrame(rows, schema_overrides=known, infer_schema_length=None))
    return Exported(file, len(rows))


def _read(file: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(file, columns=[*NEEDED, "meta"], glob=False)
    except (pl.exceptions.ColumnNotFoundError, pl.exceptions.ComputeError) as error:
        raise SourceError(f"{file}: no table of a curated set ({error}); publish the set again.") from error


def _tests(curated: Path) -> Mapping[str, list[dict[str, str]]]:
    """Inputs and expected outputs by problem, in their order."""
    files = sorted((curated / "tests").glob("*.parquet"))
    found: dict[str, list[dict[str, str]]] = {}
    for file in files:
        frame = pl.read_parquet(file, columns=TEST.names(), glob=False).sort("problem", "index")
        for name, number, given, expected in frame.select("problem", "index", "input", "output").iter_rows():
            if given is None or expected is None:
                raise SourceError(f"{file}: test {number} of problem {name} has no input or no output.")
            found.setdefault(name, []).append({"input": given, "output": expected})
    return found


def _refuse_special_judging(curated: Path, wanted: Container[str]) -> None:
    """Refuse programs that are judged by more than comparing what they print."""
    for file in sorted((curated / "judging").glob("*.parquet")):
        frame = pl.read_parquet(file, columns=JUDGING.names(), glob=False)
        for name, function, checker in frame.select("problem", "function", "checker").iter_rows():
            if name in wanted and (function is not None or checker is not None):
                kind = f"asks for the function {function}" if function is not None else "needs a checker program"
                raise SourceError(f"{file}: problem {name} {kind}; other trainers compare outputs only. Leave it out.")


def _problem(row: Row, number: int, tests: Mapping[str, list[dict[str, str]]], curated: Path) -> _Problem:
    code = row["domain"] == Domain.CODE
    where = f"{curated}, row {number}, problem {row['id']}"
    if row["statement"] is None:
        raise SourceError(f"{where}: has no statement.")
    if code and row["id"] not in tests:
        raise SourceError(
            f"{where}: a code problem without tests in {curated / 'tests'}; publish its tests beside data."
        )
    if not code and row["answer"] is None:
        raise SourceError(f"{where}: has no reference answer, which every trainer needs.")
    program = str(json.loads(row["meta"] or "{}").get(FENCE, "python")) if code else ""
    details = {FENCE: program} if code else {}
    asked = Prompted(row["id"], row["statement"], Domain(row["domain"]), row["lang"] or "en", details)
    messages = [{"role": message["role"], "content": message["content"]} for message in SOLVE.messages(asked)]
    return _Problem(row, number, messages, tests[row["id"]] if code else None, program)


def _boxed(answer: str) -> str:
    return f"\\boxed{{{answer}}}"


def _json(value: Row | Sequence[Row] | None) -> str:
    return json.dumps(value, ensure_ascii=False)
