"""Rows of problems in each format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from curation.prompts.asked import Asked
from curation.scoring.record import MARK, record_of
from curation.verify.programs.checkers import as_script
from curation.verify.programs.files import row_of_problem
from curation.verify.programs.problem import CodeProblem

Row = dict[str, Any]

MEASURED = ("pass_rate", "correct", "judged")
"""Columns that state a problem's difficulty."""


@dataclass(frozen=True, slots=True)
class ExportedProblem:
    """A set's row for all formats; ``program`` and ``tests`` are None for math."""

    row: Row
    number: int
    messages: list[dict[str, str]]
    program: CodeProblem | None
    tests: list[dict[str, str]] | None
    asked: Asked

    @property
    def statement(self) -> str:
        """Return the problem's text."""
        return str(self.row["statement"])

    @property
    def answer(self) -> str:
        """Return the reference answer."""
        return str(self.row["answer"])

    @property
    def about(self) -> Row:
        """Return the problem's ids, origin and measured columns."""
        return {name: self.row[name] for name in ("id", "group", "source", "lang", *MEASURED)}

    @property
    def columns(self) -> Row:
        """Return `about`, with ``group`` as ``problem_group``."""
        return {("problem_group" if name == "group" else name): value for name, value in self.about.items()}

    @property
    def record(self) -> str:
        """Return the problem's record for `curation.scoring`, as JSON."""
        return record_of(self.row, self.program, self.asked)

    @property
    def judging(self) -> Row | None:
        """Return how a program is judged, without tests, or None."""
        if self.program is None:
            return None
        return {name: value for name, value in row_of_problem(self.program).items() if name not in ("id", "tests")}

    def in_and_out(self) -> Row:
        """Return the tests in verl's form."""
        tests = self.tests or []
        return {"inputs": [test["input"] for test in tests], "outputs": [test["output"] for test in tests]}


def _verl(problem: ExportedProblem) -> Row:
    # verl knows no scorer of this name, so it stops if `custom_reward_function` is forgotten
    code = problem.tests is not None
    truth = as_json(problem.in_and_out()) if code else problem.answer
    return {
        "data_source": MARK,
        "prompt": problem.messages,
        "ability": "code" if code else "math",
        "reward_model": {"style": "rule", "ground_truth": truth},
        "extra_info": {"split": "train", "index": problem.number, **problem.about, MARK: problem.record},
    }


def _trl(problem: ExportedProblem) -> Row:
    # its accuracy_reward reads the solution as LaTeX; the columns of programs are for a reward function of yours
    code = problem.tests is not None
    return {
        "prompt": problem.messages,
        "solution": None if code else _boxed(problem.answer),
        "tests": as_json(problem.in_and_out()) if code else None,
        "judging": as_json(problem.judging) if code else None,
        MARK: problem.record,
        **problem.columns,
    }


def _open_r1(problem: ExportedProblem) -> Row:
    # code_reward compares outputs; cf_code_reward runs generated_checker with three files where there is one
    program = problem.program
    script = as_script(program.checker) if program is not None and program.checker is not None else None
    verification = None
    if program is not None and script is None:
        cases = [{**test, "type": "stdin_stdout"} for test in problem.tests or ()]
        verification = {"language": str(program.lang), "test_cases": cases}
    return {
        "problem": problem.statement,
        "prompt": problem.messages,
        "solution": None if program is not None else _boxed(problem.answer),
        "verification_info": verification,
        "language": None if program is None else str(program.lang),
        "official_tests": problem.tests,
        "generated_checker": script,
        "time_limit": None if program is None else program.cpu_s,
        "memory_limit": None if program is None else float(program.memory_mb),
        "input_mode": None if program is None else "stdio",
        MARK: problem.record,
        **problem.columns,
    }


def _verifiers(problem: ExportedProblem) -> Row:
    code = problem.tests is not None
    about = {**problem.about, MARK: problem.record}
    return {
        "prompt": problem.messages,
        "answer": "" if code else problem.answer,
        "info": as_json(about),
        "task": "code" if code else "math",
    }


def _nemo_rl(problem: ExportedProblem) -> Row:
    # its data processors hand `output` on to the environment, as ground truth
    return {"input": problem.messages[-1]["content"], "output": problem.record, **problem.columns}


def _nemo_gym(problem: ExportedProblem) -> Row:
    agent = {"type": "responses_api_agents", "name": "goldilocks_simple_agent"}
    params = {"input": problem.messages}
    return {"responses_create_params": params, MARK: problem.record, "agent_ref": agent, **problem.columns}


def _skyrl(problem: ExportedProblem) -> Row:
    return {
        "data_source": MARK,
        "prompt": problem.messages,
        "env_class": MARK,
        "reward_spec": {"method": "rule", "ground_truth": problem.record},
        "extra_info": {"index": problem.number, **problem.about},
    }


def _roll(problem: ExportedProblem) -> Row:
    # `domain` chooses the reward worker, `tag` is what its settings list
    labels = {"domain": MARK, "tag": MARK, "ground_truth": problem.record}
    return {**problem.columns, "messages": as_json(problem.messages), **labels}


def _messages(problem: ExportedProblem) -> Row:
    # for tinker-cookbook and ART, which leave the shape of a row to their user
    return {"messages": problem.messages, MARK: problem.record, **problem.columns}


def _areal(problem: ExportedProblem) -> Row:
    code = problem.tests is not None
    return {
        "messages": problem.messages,
        "answer": None if code else problem.answer,
        "tests": as_json(problem.in_and_out()) if code else None,
        "judging": as_json(problem.judging) if code else None,
        MARK: problem.record,
        **problem.columns,
    }


def _openrlhf(problem: ExportedProblem) -> Row:
    # the label goes to the remote reward model as it is
    return {"input": problem.messages, "label": problem.record, **problem.columns}


def _slime(problem: ExportedProblem) -> Row:
    label = "" if problem.tests is not None else problem.answer
    return {"prompt": problem.messages, "label": label, "metadata": {**problem.about, MARK: problem.record}}


def _open_instruct(problem: ExportedProblem) -> Row:
    # `dataset` names the verifier, which is ours
    return {"messages": problem.messages, "ground_truth": problem.record, "dataset": MARK, **problem.columns}


FORMATS: Mapping[str, Callable[[ExportedProblem], Row]] = {
    "verl": _verl,
    "trl": _trl,
    "open-r1": _open_r1,
    "verifiers": _verifiers,
    "nemo-rl": _nemo_rl,
    "areal": _areal,
    "openrlhf": _openrlhf,
    "slime": _slime,
    "open-instruct": _open_instruct,
    "nemo-gym": _nemo_gym,
    "skyrl": _skyrl,
    "roll": _roll,
    "tinker": _messages,
    "art": _messages,
}
"""Names for ``goldilocks export --format``."""

_MESSAGES = pl.List(pl.Struct({"role": pl.String, "content": pl.String}))
_TESTS = pl.List(pl.Struct({"input": pl.String, "output": pl.String}))
_VERIFICATION = pl.Struct(
    {
        "language": pl.String,
        "test_cases": pl.List(pl.Struct({"input": pl.String, "output": pl.String, "type": pl.String})),
    }
)
TYPES: Mapping[str, Any] = {
    "prompt": _MESSAGES,
    "messages": _MESSAGES,
    "verification_info": _VERIFICATION,
    "official_tests": _TESTS,
    "language": pl.String,
    "generated_checker": pl.String,
    "time_limit": pl.Float64,
    "memory_limit": pl.Float64,
    "input_mode": pl.String,
    "judging": pl.String,
    "solution": pl.String,
    "tests": pl.String,
    "answer": pl.String,
    "pass_rate": pl.Float64,
    "correct": pl.Int32,
    "judged": pl.Int32,
    "source": pl.String,
    "lang": pl.String,
}
"""Types of columns that rows may not determine."""


def tests_of(program: CodeProblem) -> list[dict[str, str]]:
    """Return inputs and expected outputs, JSON for functions."""
    if program.function is None:
        return [{"input": test.input.decode(), "output": test.output.decode()} for test in program.tests]
    return [
        {"input": "\n".join(map(as_json, call.args)), "output": as_json(call.expected)}
        for call in program.function.calls
    ]


def _boxed(answer: str) -> str:
    return f"\\boxed{{{answer}}}"


def as_json(value: Any) -> str:
    """Return a value as JSON with unescaped Unicode."""
    return json.dumps(value, ensure_ascii=False)
