"""Runs custom checkers of outputs in the sandbox; testlib.h is not included.

Kattis validators get ``input answer feedback_dir [flags]`` and exit with 42 or 43; testlib checkers get ``input output
answer`` and exit with 0, 1, 2 or 4. Another exit is BROKEN if the expected output causes it too, else wrong.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from curation.verify.programs.extraction import CodeLang
from curation.verify.programs.problem import SCRIPT_FILE, Checker, CheckerKind, CodeVerdict
from curation.verify.programs.tools import Program, Runner, Unready, ready
from curation.verify.sandbox import Ending, Limits, RunResult

CHECKER_LIMITS = Limits(cpu_s=30.0, memory_mb=2048)
"""Not in the paper: a checker may use more than any program it checks."""
_STANDARDS = ("-std=c++20", "-std=gnu++17", "-std=gnu++11")
_INPUT, _ANSWER, _OUTPUT, _FEEDBACK = "judge_input", "judge_answer", "team_output", "feedback"
_EXITS = {
    CheckerKind.KATTIS: {42: CodeVerdict.AC, 43: CodeVerdict.WA},
    CheckerKind.TESTLIB: {0: CodeVerdict.AC, 1: CodeVerdict.WA, 2: CodeVerdict.WA, 4: CodeVerdict.WA},
}


_AS_SCRIPT = """\
import json, os, subprocess, sys, tempfile
held = json.loads({held!r})
given, answer, output = map(os.path.abspath, sys.argv[1:4])
with tempfile.TemporaryDirectory() as folder:
    for name, text in held["sources"].items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
    feedback = os.path.join(folder, "feedback", "")
    os.mkdir(feedback)
    files = [given, answer, feedback] if held["kind"] == "kattis" else [given, output, answer]
    with open(output if held["kind"] == "kattis" else os.devnull, "rb") as printed:
        command = [sys.executable, held["main"], *files, *held["args"]]
        done = subprocess.run(command, cwd=folder, stdin=printed, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
if str(done.returncode) not in held["exits"]:
    sys.exit("the checker failed with " + str(done.returncode))
print(held["exits"][str(done.returncode)])
"""


def as_script(checker: Checker) -> str | None:
    """Return a Python checker as a script from paths (input, expected, output) to 1 or 0."""
    if checker.lang is not CodeLang.PYTHON:
        return None
    if SCRIPT_FILE in checker.sources:
        return checker.sources[SCRIPT_FILE]
    exits = {str(code): int(verdict is CodeVerdict.AC) for code, verdict in _EXITS[checker.kind].items()}
    parts = {"kind": checker.kind.value, "sources": dict(checker.sources), "main": checker.main[0]}
    return _AS_SCRIPT.format(held=json.dumps({**parts, "args": list(checker.args), "exits": exits}))


def check_outputs(
    runner: Runner, checker: Checker, runs: Sequence[tuple[bytes, bytes, bytes]]
) -> list[tuple[CodeVerdict, str]]:
    """Return AC, WA, or BROKEN with a reason per (input, answer, output)."""
    program = prepare_checker(runner, checker)
    if isinstance(program, Unready):
        return [(CodeVerdict.BROKEN, program.how)] * len(runs)
    verdicts = _checked(runner, checker, program, runs)
    failed = [place for place, (verdict, _) in enumerate(verdicts) if verdict is CodeVerdict.BROKEN]
    proofs = [(runs[place][0], runs[place][1], runs[place][1]) for place in failed]
    for place, (proof, _) in zip(failed, _checked(runner, checker, program, proofs), strict=True):
        if proof is not CodeVerdict.BROKEN:
            verdicts[place] = CodeVerdict.WA, f"only on this output {verdicts[place][1]}"
    return verdicts


def _checked(
    runner: Runner, checker: Checker, program: Program, runs: Sequence[tuple[bytes, bytes, bytes]]
) -> list[tuple[CodeVerdict, str]]:
    beside = helper_files(checker)
    files = [{**beside, _INPUT: test_input, _ANSWER: answer} for test_input, answer, _ in runs]
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
    """Return a Python program's further files."""
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
