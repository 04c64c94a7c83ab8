"""Inputs that a model's generator programs print, run in the sandbox.

What its validator programs refuse is left out, unless others speak for the inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

from curation.programs import test_generation
from curation.verify.programs.extraction import CodeLang
from curation.verify.programs.problem import Submission
from curation.verify.programs.tools import Program, Runner
from curation.verify.sandbox import Ending, Limits
from flows.run.run_folder import Run

_GENERATOR_MB = 512


def inputs_from_model(run: Run, runner: Runner, responses: Sequence[str], *, trusted: bool) -> list[str]:
    """Return the inputs that the responses' generators print and, unless others will, their validators accept."""
    settings = run.recipe.code.test_generation
    limits = Limits(settings.generator_s, memory_mb=_GENERATOR_MB, output_bytes=settings.max_input_kb << 10)
    inputs: list[str] = []
    for response in responses:
        programs = test_generation.programs_in(response)
        if programs is None:
            continue
        printed = _outputs(
            runner, programs.generator, [f"{k}\n".encode() for k in range(1, settings.batch + 1)], limits
        )
        outputs = [text for text in printed if text]
        if programs.validator is not None and outputs and not trusted:
            checks = _outputs(runner, programs.validator, outputs, limits)
            outputs = [text for text, check in zip(outputs, checks, strict=True) if check is not None]
        inputs += [text.decode() for text in outputs if _is_text(text)]
    return list(dict.fromkeys(inputs))


def _outputs(runner: Runner, code: str, stdins: Sequence[bytes], limits: Limits) -> list[bytes | None]:
    """Return what a program prints for each standard input; None where it does not end by itself with exit code 0."""
    program = runner.tools.prepare(Submission(CodeLang.PYTHON, code))
    if not isinstance(program, Program):
        return [None] * len(stdins)
    return [
        ran.stdout if ran.ending is Ending.EXITED and ran.exit_code == 0 else None
        for ran in runner.tools.run(program, stdins, limits)
    ]


def _is_text(output: bytes) -> bool:
    try:
        return output.decode().strip() != ""
    except UnicodeDecodeError:
        return False
