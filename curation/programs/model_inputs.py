"""Run a model's generator programs in the sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from curation.programs.hunting import HUNTED_BYTES, outputs_within
from curation.questions.test_programs import programs_in
from curation.verify.programs.problem import CodeLang, Submission
from curation.verify.programs.tools import Runner
from curation.verify.sandbox import Limits

WRITTEN = "written"
"""Shape of a model's small inputs."""
MAX_INPUT_KB = 4096
"""Larger inputs are not made."""
DESIGNED_INPUTS = 24
"""Designed inputs per generator."""
GENERATOR_S = 10.0
"""CPU seconds of a generator's or validator's run."""
_GENERATOR_MB = 512
_SMALL = 48
"""Small inputs per generator."""
_SMALL_S = 10.0
"""CPU seconds for all small inputs."""


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """Distinct printed inputs: ``designed`` and ``small`` ones."""

    designed: list[str] = field(default_factory=list)
    small: list[str] = field(default_factory=list)


def inputs_from_model(runner: Runner, responses: Sequence[str], *, trusted: bool) -> ModelInputs:
    """Return the generators' inputs that, unless ``trusted``, their own validators accept."""
    limits = Limits(GENERATOR_S, memory_mb=_GENERATOR_MB, output_bytes=MAX_INPUT_KB << 10)
    designed: dict[str, None] = {}
    small: dict[str, None] = {}
    for response in responses:
        programs = programs_in(response)
        if programs is None:
            continue
        numbers = range(1, DESIGNED_INPUTS + _SMALL + 1)
        stdins = [f"{k}\n".encode() for k in numbers]
        generator = Submission(CodeLang.PYTHON, programs.generator)
        printed = outputs_within(runner, generator, stdins[:DESIGNED_INPUTS], limits)[0]
        printed += outputs_within(runner, generator, stdins[DESIGNED_INPUTS:], limits, _SMALL_S)[0]
        outputs = [(k, text) for k, text in zip(numbers, printed, strict=True) if text and _is_text(text)]
        if programs.validator is not None and outputs and not trusted:
            validator = Submission(CodeLang.PYTHON, programs.validator)
            checks = outputs_within(runner, validator, [text for _, text in outputs], limits)[0]
            outputs = [one for one, check in zip(outputs, checks, strict=True) if check is not None]
        designed |= {text.decode(): None for k, text in outputs if k <= DESIGNED_INPUTS}
        small |= {text.decode(): None for k, text in outputs if k > DESIGNED_INPUTS and len(text) <= HUNTED_BYTES}
    return ModelInputs(list(designed), [text for text in small if text not in designed])


def _is_text(output: bytes) -> bool:
    try:
        return output.decode().strip() != ""
    except UnicodeDecodeError:
        return False
