"""Hostile answers end within the limit, are never executed, and leave the parent's memory flat."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from curation.records import Outcome
from curation.verify.extraction import clean_recorded_answer, extract_answer
from curation.verify.math_judge import JudgeTask, MathJudge, Response

ATTACKS = {
    "braces": "{" * 10_000 + "x" + "}" * 10_000,
    "brackets": "(" * 10_000 + "x" + ")" * 10_000,
    "fractions": r"\frac{1}{" * 1000 + "2" + "}" * 1000,
    "roots": r"\sqrt{" * 300 + "x" + "}" * 300,
    "tower": "9^{9^{9^9}}",
    "long tower": "^".join(["9"] * 50),
    "digits": "7" * 1_000_000,
    "decimals": "0." + "1" * 3900,
    "null bytes": "1\x002\x00",
    "right to left": "\u202e12\u202c",
    "import": "__import__('os').system('touch /tmp/goldilocks-was-here')",
    "eval": "eval(chr(112))",
    "factorials": "10" + "!" * 40,
    "nested factorials": "((((10!)!)!)!)",
    "large factorial": "(10^{15})!",
    "long sum": r"\sum_{k=1}^{10^{9}} k",
    "nested sums": r"\sum_{a=1}^{200}\sum_{b=1}^{200}\sum_{c=1}^{200} abc",
    "signs": "(" + ",".join([r"\pm x"] * 30) + ")",
    "expansion": "(a+b+c+d+g+h)^{40}",
    "nested powers": "(" * 25 + "x+1" + ")^{2}" * 25,
    "large power": "2^{100000000}",
    "sine of a large number": r"\sin(10^{1000000})",
    "exponentials": "e^{" * 30 + "1" + "}" * 30,
    "binomial": r"\binom{10^{9}}{10^8}",
    "bars": "|" * 5000,
    "environments": r"\begin{pmatrix}" * 300,
    "zero": "1/0",
    "surrogate": "\ud800x",
    "unions": r"\cup".join(f"[{n},{n + 1}]" for n in range(400)),
    "boxes": r"\boxed{" * 50_000,
    "dollars": "$" * 100_000,
}
CALCULUS = {
    "hard integral": r"\int_0^{\infty} \frac{\sin(x^{100})e^{x^3}}{1+x^{77}} dx",
    "integrals": r"\int " * 30 + "x" + r"\,dx" * 30,
    "derivatives": r"\frac{d}{dx}" * 30 + "x^{x^x}",
    "sum of towers": r"\sum_{k=1}^{n} k^{k^{k^k}}",
    "long product": r"\prod_{k=1}^{10^{9}} k",
}
"""What sympy would take for ever over; each costs a worker its whole limit, so once is enough."""


@pytest.fixture(scope="module")
def judge() -> Iterator[MathJudge]:
    with MathJudge(workers=2, limit_s=1.0) as found:
        yield found


def test_an_attack_ends_and_is_not_correct(judge: MathJudge) -> None:
    attacks = ATTACKS | CALCULUS
    tasks = [JudgeTask(name, "x+1", "en", (Response(None, attacks[name]), Response(None, "1+x"))) for name in attacks]
    for name, result in zip(attacks, judge.judge(tasks), strict=True):
        assert result.verdicts[0].outcome is not Outcome.CORRECT, name
        assert result.verdicts[1].outcome is Outcome.CORRECT, f"the neighbour of {name} is judged all the same"


def test_an_attack_as_the_reference_ends(judge: MathJudge) -> None:
    names = ("tower", "braces", "expansion", "nested factorials", "digits")
    tasks = [JudgeTask(name, ATTACKS[name], "en", (Response(None, "x"), Response(None, "5"))) for name in names]
    for result in judge.judge(tasks):
        assert all(verdict.outcome is not Outcome.CORRECT for verdict in result.verdicts), result
    assert all(check.usable or check.reason for check in judge.check([(ATTACKS[name], "en") for name in names]))


@pytest.mark.slow
def test_the_parents_memory_stays_flat() -> None:
    """What passes its limit is killed sooner than elsewhere: the parent does the same, and the test waits less."""
    tasks = [JudgeTask(name, "x+1", "en", (Response(None, text),)) for name, text in ATTACKS.items()]
    with MathJudge(workers=2, limit_s=0.25) as judge:
        list(judge.judge(tasks))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        list(judge.judge(tasks))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 13 * 1024, "KiB"


@pytest.mark.slow
def test_a_megabyte_of_one_thing_is_read_to_its_end() -> None:
    units = [
        "\\boxed{",
        "{",
        "\\boxed{1}",
        "the answer is 5. ",
        "$",
        "\\(",
        " ",
        ". ",
        "#### 5\n",
        "<think>",
        "1,000 ",
        "**",
    ]
    for unit in (*units, "7"):
        text = unit * (1_000_000 // len(unit))
        found = [extract_answer(text), extract_answer(text, "loose")]
        answers = [extracted.answer for extracted in found if extracted is not None]
        assert all(len(answer) <= len(text) for answer in (*answers, clean_recorded_answer(text) or "")), unit
