"""Decides which given inputs are refused, by validators that are tested first.

A trusted validator refuses few given and enough spoiled inputs. Without one, only cut-off inputs are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from curation.verify.programs.checkers import InputVerdict, ReadyValidator, check_inputs, prepare_validator
from curation.verify.programs.problem import Validator
from curation.verify.programs.tools import Runner

VERSION = "validation@7"

MAX_REFUSED = 0.4
"""Max share of given inputs that a validator may refuse or fail on."""
MIN_SPOILED_REFUSED, MIN_SPOILED_REFUSED_MODEL = 0.5, 0.8
"""Min share of spoiled inputs that a package's or a model's validator must refuse."""
_GIVEN = 40
"""Max given inputs to try a validator on."""
_SPOILED_OF = 3
"""Given inputs that are spoiled."""
_SHORTEST_CUT = 200
"""Min characters of a cut-off input; sources show some hundred."""
_CUT = ("...", "…")
_WHOLE = re.compile(r"(?<![\w.-])-?\d+(?![\w.])")


@dataclass(frozen=True, slots=True)
class GivenInput:
    """The source's input of test ``index``; ``example`` if it is in the statement."""

    index: int
    text: str
    example: bool


@dataclass(frozen=True, slots=True)
class Vouching:
    """The verdict on a problem's inputs, ``by`` package, model, or nothing.

    ``refused`` maps inputs to messages, ``undecided`` have no verdict, ``aside`` explains rejected validators.
    """

    by: str = ""
    validators: tuple[ReadyValidator, ...] = ()
    refused: Mapping[int, str] = field(default_factory=dict)
    aside: tuple[str, ...] = ()
    undecided: frozenset[int] = frozenset()

    def check(self, runner: Runner, texts: Sequence[str]) -> list[bool]:
        """Return whether the validators allow each input."""
        inputs = [text.encode("utf-8", "surrogatepass") for text in texts]
        return [verdict.valid is True for verdict in check_inputs(runner, self.validators, inputs)]


def vouch(
    runner: Runner,
    package: Sequence[Validator],
    model: Sequence[Validator],
    given: Sequence[GivenInput],
) -> Vouching:
    """Return the verdict of the package's validators, else of a model's."""
    aside: list[str] = []
    for by, validators in (("package", package), ("model", model)):
        believed = []
        for validator in validators:
            ready = prepare_validator(runner, validator)
            why = ready if isinstance(ready, str) else _fault(runner, ready, given, strict=by == "model")
            if why is not None:
                aside.append(f"the validator {validator.main[0]} of the {by} is set aside: {why}")
            elif isinstance(ready, ReadyValidator):
                believed.append(ready)
        if believed:
            verdicts = _verdicts(runner, believed, [given_input.text for given_input in given])
            pairs = list(zip(given, verdicts, strict=True))
            refused = {given_input.index: verdict.words for given_input, verdict in pairs if verdict.valid is False}
            undecided = frozenset(given_input.index for given_input, verdict in pairs if verdict.valid is None)
            return Vouching(by, tuple(believed), refused, tuple(aside), undecided)
    return Vouching(aside=tuple(aside))


def _fault(runner: Runner, ready: ReadyValidator, given: Sequence[GivenInput], *, strict: bool) -> str | None:
    tried = sorted(given, key=lambda given_input: not given_input.example)[:_GIVEN]
    verdicts = _verdicts(runner, [ready], [given_input.text for given_input in tried])
    refused = [given_input for given_input, verdict in zip(tried, verdicts, strict=True) if verdict.valid is False]
    failed = [verdict.words for verdict in verdicts if verdict.valid is None]
    if not tried or len(failed) > MAX_REFUSED * len(tried):
        return f"it failed on {len(failed)} of {len(tried)} given inputs{f': {failed[0]}' if failed else ''}"
    alone = not strict and len(refused) == 1 < len(tried)
    if len(refused) > MAX_REFUSED * len(tried) and not alone:
        return f"it refuses {len(refused)} of {len(tried)} given inputs"
    if strict and any(given_input.example for given_input in refused):
        return "it refuses an example of the statement"
    spoiled = spoiled_inputs([given_input.text for given_input in tried if given_input not in refused])
    passing = sum(verdict.valid is True for verdict in _verdicts(runner, [ready], spoiled, tidy=False))
    min_refused = MIN_SPOILED_REFUSED_MODEL if strict else MIN_SPOILED_REFUSED
    if len(spoiled) - passing < min_refused * len(spoiled):
        return f"it lets {passing} of {len(spoiled)} spoiled inputs pass"
    return None


def _verdicts(
    runner: Runner, ready: Sequence[ReadyValidator], texts: Sequence[str], *, tidy: bool = True
) -> list[InputVerdict]:
    """Return verdicts; ``tidy`` retries refused inputs with clean white space."""
    verdicts = check_inputs(runner, ready, [text.encode("utf-8", "surrogatepass") for text in texts])
    refused = [index for index, verdict in enumerate(verdicts) if tidy and verdict.valid is False]
    changed = [index for index in refused if tidy_text(texts[index]) != texts[index]]
    retried = check_inputs(
        runner, ready, [tidy_text(texts[index]).encode("utf-8", "surrogatepass") for index in changed]
    )
    for index, verdict in zip(changed, retried, strict=True):
        verdicts[index] = verdict if verdict.valid else verdicts[index]
    return verdicts


def cut_inputs(inputs: Mapping[int, str]) -> dict[int, str]:
    """Return inputs that the source cut off, by test, with evidence.

    They are long and end in an ellipsis, in a problem without other dots in a row.
    """
    whole = {test: text.rstrip() for test, text in inputs.items()}
    if any(".." in text.removesuffix("...") for text in whole.values()):
        return {}
    ends = {test: text[-12:] for test, text in whole.items() if len(text) >= _SHORTEST_CUT and text.endswith(_CUT)}
    return {test: f"the source cut it off: it ends in {end!r}" for test, end in ends.items()}


def tidy_text(text: str) -> str:
    """Clean up carriage returns, trailing blanks and final line breaks."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    return "\n".join(lines).rstrip("\n") + "\n"


def spoiled_inputs(inputs: Sequence[str]) -> list[str]:
    """Return empty, longer, wrong or incomplete variants of short inputs."""
    spoiled = [""]
    for text in sorted(set(inputs), key=len)[:_SPOILED_OF]:
        tidy = tidy_text(text)
        lines = tidy.splitlines()
        spoiled.append(f"{tidy}17 x\n")
        counted = _is_counted(lines)
        if len(lines) > 1 and counted:
            spoiled.append("\n".join(lines[:-1]) + "\n")
        numbers = list(_WHOLE.finditer(tidy))
        if numbers:
            last = numbers[-1]
            spoiled += [f"{tidy[: last.start()]}{replacement}{tidy[last.end() :]}" for replacement in ("x", "9" * 40)]
        if len(tidy.split()) > 3 and counted:
            spoiled.append(tidy[: len(tidy) // 2].rstrip() + "\n")
    return [text for text in dict.fromkeys(spoiled) if text not in set(inputs)]


def _is_counted(lines: Sequence[str]) -> bool:
    """Return whether a number counts later lines, or the next line's tokens or characters."""
    for at, line in enumerate(lines[:-1]):
        following = lines[at + 1]
        counts = {str(len(lines) - at - 1), str(len(following.split())), str(len(following))}
        if counts & set(line.split()):
            return True
    return False
