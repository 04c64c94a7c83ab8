"""Runs custom checkers of outputs and validators of inputs in the sandbox; testlib.h is not included.

Kattis validators get ``input answer feedback_dir [flags]`` and exit with 42 or 43; testlib checkers get ``input output
answer`` and exit with 0, 1, 2 or 4. Another exit is BROKEN if the expected output causes it too, else wrong.

Input validators exit with 42 for allowed inputs. Checktestdata grammars are converted in the sandbox, as parsing
evaluates arithmetic.

Invariant: only inputs shown to be allowed are accepted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from curation.records import VerifierError
from curation.verify.programs.problem import (
    Checker,
    CheckerKind,
    CodeLang,
    CodeVerdict,
    Unready,
    Validator,
    ValidatorLang,
)
from curation.verify.programs.tools import Program, Runner, ready
from curation.verify.sandbox import Ending, Limits, RunResult

CHECKER_LIMITS = Limits(cpu_s=30.0, memory_mb=2048)
"""Not in the paper; above any program's."""
_STANDARDS = ("-std=c++20", "-std=gnu++17", "-std=gnu++11")
_INPUT, _ANSWER, _OUTPUT, _FEEDBACK = "judge_input", "judge_answer", "team_output", "feedback"
_EXITS = {
    CheckerKind.KATTIS: {42: CodeVerdict.AC, 43: CodeVerdict.WA},
    CheckerKind.TESTLIB: {0: CodeVerdict.AC, 1: CodeVerdict.WA, 2: CodeVerdict.WA, 4: CodeVerdict.WA},
}


def check_outputs(
    runner: Runner, checker: Checker, runs: Sequence[tuple[bytes, bytes, bytes]]
) -> list[tuple[CodeVerdict, str]]:
    """Return AC, WA, or BROKEN with a reason per (input, answer, output)."""
    program = prepare_checker(runner, checker)
    if isinstance(program, Unready):
        return [(CodeVerdict.BROKEN, program.how)] * len(runs)
    verdicts = _checked(runner, checker, program, runs)
    failed = [index for index, (verdict, _) in enumerate(verdicts) if verdict is CodeVerdict.BROKEN]
    proofs = [(runs[index][0], runs[index][1], runs[index][1]) for index in failed]
    for index, (proof, _) in zip(failed, _checked(runner, checker, program, proofs), strict=True):
        if proof is not CodeVerdict.BROKEN:
            verdicts[index] = CodeVerdict.WA, f"only on this output {verdicts[index][1]}"
    return verdicts


def _checked(
    runner: Runner, checker: Checker, program: Program, runs: Sequence[tuple[bytes, bytes, bytes]]
) -> list[tuple[CodeVerdict, str]]:
    helpers = helper_files(checker)
    files = [{**helpers, _INPUT: test_input, _ANSWER: answer} for test_input, answer, _ in runs]
    if checker.kind is CheckerKind.KATTIS:
        for file_set in files:
            file_set[f"{_FEEDBACK}/.keep"] = b""
        args = (_INPUT, _ANSWER, f"{_FEEDBACK}/", *checker.args)
        stdins = [output for _, _, output in runs]
    else:
        for file_set, (_, _, output) in zip(files, runs, strict=True):
            file_set[_OUTPUT] = output
        args = (_INPUT, _OUTPUT, _ANSWER, *checker.args)
        stdins = [b""] * len(runs)
    return [
        _verdict_of(checker, result) for result in runner.run(program, stdins, CHECKER_LIMITS, args=args, files=files)
    ]


def helper_files(checker: Checker) -> dict[str, bytes]:
    """Return a Python checker's other files."""
    if checker.lang is not CodeLang.PYTHON:
        return {}
    return {
        name: text.encode("utf-8", "surrogateescape")
        for name, text in checker.sources.items()
        if name not in checker.main
    }


def _verdict_of(checker: Checker, result: RunResult) -> tuple[CodeVerdict, str]:
    message = (result.stderr or result.stdout)[:300].decode("utf-8", "replace").strip()
    if result.ending is Ending.EXITED and result.exit_code in _EXITS[checker.kind]:
        verdict = _EXITS[checker.kind][result.exit_code]
        return verdict, "" if verdict is CodeVerdict.AC else f"the checker rejects it: {message}".rstrip(": ")
    how = f"exit code {result.exit_code}" if result.ending is Ending.EXITED else result.ending.value
    return CodeVerdict.BROKEN, f"the checker failed: {how}: {message or result.note}"


def prepare_checker(runner: Runner, checker: Checker) -> Program | Unready:
    """Return a runnable checker, CE or BROKEN."""
    if checker.lang is CodeLang.PYTHON:
        return Program(CodeLang.PYTHON, checker.sources[checker.main[0]])
    sources = {name: text.encode("utf-8", "surrogateescape") for name, text in checker.sources.items()}
    why = ""
    for standard in _STANDARDS:
        program = ready(runner.cpp(sources, checker.main, (standard, "-O2")), "")
        if isinstance(program, Program):
            return program
        why = why or program.how
        if program.verdict is CodeVerdict.BROKEN:
            return program
    return Unready(CodeVerdict.CE, f"the checker cannot be compiled: {why}")


_CONVERT_LIMITS = Limits(cpu_s=10.0, memory_mb=512, output_bytes=4 << 20)
_MODULES = ("__version__", "lib", "tokenizer", "parser")
_CONVERT = """\
import json, sys, types
texts = json.loads({texts!r})
sys.modules["checktestdata"] = types.ModuleType("checktestdata")
for name, text in texts.items():
    module = types.ModuleType("checktestdata." + name)
    module.__file__ = name
    sys.modules["checktestdata." + name] = module
    setattr(sys.modules["checktestdata"], name, module)
    exec(compile(text, name, "exec"), module.__dict__)
from checktestdata import parser, tokenizer
class Source:
    def __init__(self, name):
        self.name = name
    def read_text(self):
        return texts[self.name]
parser.Path = Source
sys.setrecursionlimit(20000)
print(parser.parse(tokenizer.tokenize(sys.stdin.buffer.read())).python_code(standalone=True))
"""


@dataclass(frozen=True, slots=True)
class InputVerdict:
    """Whether an input is allowed, None after a failure; with a message."""

    valid: bool | None
    words: str = ""


ACCEPTED = InputVerdict(True)


@dataclass(frozen=True, slots=True)
class ReadyValidator:
    """A validator that can be run."""

    validator: Validator
    program: Program


def prepare_validator(runner: Runner, validator: Validator) -> ReadyValidator | str:
    """Return a runnable validator, or why there is none.

    Raises `VerifierError` if the sandbox failed.
    """
    if validator.lang is ValidatorLang.CHECKTESTDATA:
        return _converted(runner, validator)
    if validator.lang is ValidatorLang.OTHER:
        return validator.sources[validator.main[0]]
    program = prepare_checker(runner, _as_checker(validator))
    if isinstance(program, Program):
        return ReadyValidator(validator, program)
    if program.verdict is CodeVerdict.BROKEN:
        raise VerifierError(f"an input validator could not be compiled: {program.how}; run this again")
    return program.how


def check_inputs(
    runner: Runner, validators: Sequence[ReadyValidator], inputs: Sequence[bytes], limits: Limits = CHECKER_LIMITS
) -> list[InputVerdict]:
    """Return verdicts on inputs, which all validators must accept."""
    verdicts = [ACCEPTED] * len(inputs)
    for prepared in validators:
        indices = [index for index, verdict in enumerate(verdicts) if verdict.valid is not False]
        stdins = [inputs[index] for index in indices]
        validator = prepared.validator
        is_grammar = validator.lang is ValidatorLang.CHECKTESTDATA
        helpers = {} if is_grammar else helper_files(_as_checker(validator))
        results = runner.run(prepared.program, stdins, limits, args=validator.args, files=[helpers] * len(stdins))
        for index, result in zip(indices, results, strict=True):
            verdict = _input_verdict(validator, result)
            if verdict.valid is not True and (verdicts[index].valid or verdict.valid is False):
                verdicts[index] = verdict
    return verdicts


def _as_checker(validator: Validator) -> Checker:
    lang = CodeLang(validator.lang.value)
    return Checker(CheckerKind.KATTIS, lang, validator.sources, validator.main, validator.args)


def _input_verdict(validator: Validator, result: RunResult) -> InputVerdict:
    if result.ending is Ending.EXITED and result.exit_code == validator.accepts:
        return ACCEPTED
    message = (result.stderr or result.stdout).decode("utf-8", "replace").strip()
    if result.ending is Ending.EXITED:
        line = message.splitlines()[-1] if validator.lang is ValidatorLang.PYTHON and message else message
        return InputVerdict(False, f"exit code {result.exit_code}: {line[:200]}".rstrip(": "))
    if result.ending is Ending.SIGNALED:
        return InputVerdict(False, f"signal {result.signal}: {message[:200]}".rstrip(": "))
    return InputVerdict(None, f"{result.ending.value} {result.note}".rstrip())


@cache
def _converter() -> str:
    import checktestdata

    folder = Path(checktestdata.__path__[0])
    return _CONVERT.format(texts=json.dumps({name: (folder / f"{name}.py").read_text() for name in _MODULES}))


def _converted(runner: Runner, validator: Validator) -> ReadyValidator | str:
    grammar = validator.sources[validator.main[0]].encode("utf-8", "surrogateescape")
    (result,) = runner.run(Program(CodeLang.PYTHON, _converter()), [grammar], _CONVERT_LIMITS)
    if result.ending is Ending.EXITED and result.exit_code == 0:
        return ReadyValidator(validator, Program(CodeLang.PYTHON, result.stdout.decode("utf-8", "replace")))
    lines = result.stderr.decode("utf-8", "replace").strip().splitlines()
    how = f"exit code {result.exit_code}" if result.ending is Ending.EXITED else result.ending.value
    return f"checktestdata cannot read it: {how}: {lines[-1][:200] if lines else result.note}"
