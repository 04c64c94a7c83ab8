"""Runs input validators, which exit with 42 for an allowed input.

Grammars of checktestdata become Python in the sandbox, because parsing evaluates arithmetic.

Invariant: what is not shown to be allowed is not accepted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from curation.records import VerifierError
from curation.verify.programs.checkers import CHECKER_LIMITS, helper_files, prepare_checker
from curation.verify.programs.extraction import CodeLang
from curation.verify.programs.problem import Checker, CheckerKind, CodeVerdict, Validator, ValidatorLang
from curation.verify.programs.tools import Program, Runner
from curation.verify.sandbox import Ending, Limits, RunResult

_CONVERT_LIMITS = Limits(cpu_s=10.0, memory_mb=512, output_bytes=4 << 20)
_MODULES = ("__version__", "lib", "tokenizer", "parser")
_CONVERT = """\
import json, sys, types
held = json.loads({held!r})
sys.modules["checktestdata"] = types.ModuleType("checktestdata")
for name, text in held.items():
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
        return held[self.name]
parser.Path = Source
sys.setrecursionlimit(20000)
print(parser.parse(tokenizer.tokenize(sys.stdin.buffer.read())).python_code(standalone=True))
"""


@dataclass(frozen=True, slots=True)
class InputVerdict:
    """Whether an input is allowed, None after a failure; with the message."""

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
    for ready in validators:
        places = [place for place, verdict in enumerate(verdicts) if verdict.valid is not False]
        stdins = [inputs[place] for place in places]
        validator = ready.validator
        grammar = validator.lang is ValidatorLang.CHECKTESTDATA
        beside = {} if grammar else helper_files(_as_checker(validator))
        results = runner.run(ready.program, stdins, limits, args=validator.args, files=[beside] * len(stdins))
        for place, result in zip(places, results, strict=True):
            verdict = _verdict_of(validator, result)
            if verdict.valid is not True and (verdicts[place].valid or verdict.valid is False):
                verdicts[place] = verdict
    return verdicts


def _as_checker(validator: Validator) -> Checker:
    lang = CodeLang(validator.lang.value)
    return Checker(CheckerKind.KATTIS, lang, validator.sources, validator.main, validator.args)


def _verdict_of(validator: Validator, result: RunResult) -> InputVerdict:
    if result.ending is Ending.EXITED and result.exit_code == validator.accepts:
        return ACCEPTED
    words = (result.stderr or result.stdout).decode("utf-8", "replace").strip()
    if result.ending is Ending.EXITED:
        line = words.splitlines()[-1] if validator.lang is ValidatorLang.PYTHON and words else words
        return InputVerdict(False, f"exit code {result.exit_code}: {line[:200]}".rstrip(": "))
    if result.ending is Ending.SIGNALED:
        return InputVerdict(False, f"signal {result.signal}: {words[:200]}".rstrip(": "))
    return InputVerdict(None, f"{result.ending.value} {result.note}".rstrip())


@cache
def _converter() -> str:
    """Return a program that converts checktestdata grammars to Python."""
    import checktestdata

    folder = Path(checktestdata.__path__[0])
    return _CONVERT.format(held=json.dumps({name: (folder / f"{name}.py").read_text() for name in _MODULES}))


def _converted(runner: Runner, validator: Validator) -> ReadyValidator | str:
    grammar = validator.sources[validator.main[0]].encode("utf-8", "surrogateescape")
    (result,) = runner.run(Program(CodeLang.PYTHON, _converter()), [grammar], _CONVERT_LIMITS)
    if result.ending is Ending.EXITED and result.exit_code == 0:
        return ReadyValidator(validator, Program(CodeLang.PYTHON, result.stdout.decode("utf-8", "replace")))
    words = result.stderr.decode("utf-8", "replace").strip().splitlines()
    how = f"exit code {result.exit_code}" if result.ending is Ending.EXITED else result.ending.value
    return f"checktestdata cannot read it: {how}: {words[-1][:200] if words else result.note}"
