"""Disputed labels argued before a judge: the share of suspicions that direct, consultancy and debate resolve rightly.

    .venv/bin/python -m tests.benchmarks.bench_debates [--problems 400] [--rounds 1]
    .venv/bin/python -m tests.benchmarks.bench_debates --letters [--problems 40]
    .venv/bin/python -m tests.benchmarks.bench_debates --real FOLDER [--problems 40] [--speakers scripted smollm]

A problem is a sum of three steps. Half of the references are planted wrong and the rival is right; the others are right
and suspected wrongly. A wrong answer comes of one slip in one step. Scripted speakers list the steps that lead to their
answer, so that whoever argues for the wrong one states one false sum.

Scripted judges: `solves .6` sums the problem itself and is right in .6 of the cases, deaf to speeches; `checks .9`
takes each stated sum for false in .9 of the cases where it is, and in .05 where it is not, and solves by itself with .6
where that tells the sides not apart; `last` believes who spoke last, `longer` who said more.

--letters: SmolLM2-135M-Instruct judges by what it gives "A" and "B" as its next token, p(A) / (p(A) + p(B)), and hears
the scripted speakers. --real: the same through `goldilocks run` and `goldilocks adjudicate` in vLLM, two votes a view,
and it hears itself too. Rightly: the score is on the right answer's side of 1/2, ties half. Sure: the score is .8 or
more for an answer; of these the share that is right.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from curation.adjudication import VIEWS, Debate, Protocol, argued_by, score_by
from curation.records import Domain, PromptRequest, problem_id
from training.evaluation.estimators import mean_interval

SURE = 0.8
KIND = "suspected_wrong_label"


@dataclass(frozen=True, slots=True)
class Case:
    """A planted dispute: the reference and its rival, of which one is ``right``."""

    statement: str
    reference: int
    rival: int
    right: int


def cases(count: int, seed: int = 0) -> Iterator[Case]:
    """Yield disputes, every other one with a wrong reference."""
    rng, seen = random.Random(seed), set[str]()
    while len(seen) < count:
        first, second, third, fourth = (rng.randint(11, 89) for _ in range(4))
        statement = f"What is {first} + {second} + {third} + {fourth}?"
        if statement in seen:
            continue
        right, slip = first + second + third + fourth, rng.choice([-20, -10, -2, -1, 1, 2, 10, 20])
        wrong_reference = len(seen) % 2 == 0
        seen.add(statement)
        answers = (right + slip, right) if wrong_reference else (right, right + slip)
        yield Case(statement, *answers, right)


def speech(request: PromptRequest) -> str:
    """Argue for an answer by its steps; a wrong one slips in a step that the text of the request chooses."""
    problem, mine = (
        re.search(r"What is ([\d +]+)\?", request.statement),
        re.search(r"Your answer:\n\n> (\d+)", request.statement),
    )
    assert problem is not None
    assert mine is not None
    numbers = [int(number) for number in problem[1].split("+")]
    slip = int(mine[1]) - sum(numbers)
    slips_at = int(hashlib.blake2b(problem[1].encode()).hexdigest(), 16) % (len(numbers) - 1)
    total, steps = numbers[0], []
    for place, number in enumerate(numbers[1:]):
        after = total + number + (slip if place == slips_at else 0)
        steps.append(f"{total} + {number} = {after}.")
        total = after
    tail = " Every step can be checked, and there is no other way to read the problem." if slip else ""
    return f"{' '.join(steps)} So my answer {total} is right.{tail}"


def chance(*parts: object) -> float:
    """Return a number below 1 that is always the same for the same parts."""
    return int(hashlib.blake2b(repr(parts).encode(), digest_size=6).hexdigest(), 16) / 2**48


def heard(request: PromptRequest) -> list[tuple[str, str]]:
    """Return letter and text of the speeches of a view."""
    parts = re.split(r"Round \d+, for answer ([AB]):\n\n", request.statement)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def solves(request: PromptRequest) -> str:
    """Give the letter of the right answer in .6 of the problems, that of the other one in the rest."""
    answers: dict[str, int] = {
        letter: int(text) for letter, text in re.findall(r"Answer ([AB]):\n\n> (\d+)", request.statement)
    }
    problem = re.search(r"What is ([\d +]+)\?", request.statement)
    assert problem is not None
    right = sum(int(number) for number in problem[1].split("+"))
    is_able = chance("solves", problem[1]) < 0.6
    return next(letter for letter, answer in answers.items() if (answer == right) is is_able)


def checks(request: PromptRequest) -> str:
    """Give the letter of the side of which fewer sums seem false; its own solution where that is no difference."""
    doubts = dict.fromkeys("AB", 0)
    for letter, text in heard(request):
        for one, two, result in set(re.findall(r"(\d+) \+ (\d+) = (\d+)", text)):
            is_false = int(one) + int(two) != int(result)
            doubts[letter] += chance("sum", one, two, result) < (0.9 if is_false else 0.05)
    spoke = {letter for letter, _ in heard(request)}
    if len(spoke) == 1:  # a consultancy: a speech without a doubt is believed
        (letter,) = spoke
        return letter if not doubts[letter] else "BA"["AB".index(letter)]
    return solves(request) if doubts["A"] == doubts["B"] else min(("A", "B"), key=lambda letter: doubts[letter])


def last(request: PromptRequest) -> str:
    """Give the letter of who spoke last."""
    return heard(request)[-1][0] if heard(request) else "A"


def longer(request: PromptRequest) -> str:
    """Give the letter of who said more."""
    lengths = dict.fromkeys("AB", 0)
    for letter, text in heard(request):
        lengths[letter] += len(text)
    return max(("A", "B"), key=lambda letter: lengths[letter])


JUDGES: dict[str, Callable[[PromptRequest], str]] = {
    "solves .6": solves,
    "checks .9": checks,
    "last": last,
    "longer": longer,
}


def row(name: str, protocol: str, scores: Sequence[float]) -> str:
    """Return a line of the table, of the probabilities of the right answers."""
    rightly = [0.5 if abs(score - 0.5) < 1e-9 else float(score > 0.5) for score in scores]
    sure = [score > 0.5 for score in scores if max(score, 1 - score) >= SURE]
    within = mean_interval(rightly, 0.0, 1.0)
    precision = f"{sum(sure) / len(sure):.2f}" if sure else "none"
    mean = sum(scores) / len(scores)
    return (
        f"| {name} | {protocol} | {within.mean:.2f} ({within.low:.2f} to {within.high:.2f}) | {mean:.2f} | "
        f"{len(sure) / len(scores):.2f}: {precision} |"
    )


def of_right(case: Case, score: float) -> float:
    """Return the probability of the right answer from that of the reference."""
    return score if case.reference == case.right else 1 - score


def scripted(options: argparse.Namespace) -> None:
    """Print the table of the scripted judges."""
    planted = list(cases(options.problems))
    for name, judge in JUDGES.items():
        for protocol in Protocol:
            scores = []
            for case in planted:
                answers = str(case.reference), str(case.rival)
                debate = argued_by(Debate("", KIND, case.statement, "en", answers, protocol), options.rounds, speech)
                assert debate is not None
                score = score_by(debate, lambda request, judge=judge: f"VERDICT: {judge(request)}")  # type: ignore[misc]
                assert score is not None
                scores.append(of_right(case, score))
            print(row(name, protocol.value, scores), flush=True)


RECIPE = """
name = "debates"
workers = 1
[[sources]]
name = "sums"
kind = "jsonl"
path = "problems.jsonl"
license = "MIT"
columns = {{ statement = "question", answer = "final" }}
[near_dedup]
enabled = false # two sums are as alike as that
[stage1]
model = "student"
band = {{ attempts = 4 }}
[models.student]
kind = "recorded"
name = "weak@1"
path = "attempts.jsonl"
columns = {{ problem = "question", attempts = "tries", answer = "answer" }}
[adjudication]
rounds = {rounds}
judge_answers = "letter"
votes = 2
max_failed = 0.0
[adjudication.judge]
kind = "vllm"
model = {model}
prompt = "plain"
thinking = "none"
keep_tokens = true
decoding = {{ temperature = 0.7, max_tokens = 12 }}
{engine}
{speaker}
"""
ENGINE = 'dtype = "float32"\nmax_model_len = 2048\nkv_cache_mb = 512\nin_flight = 32'
SCRIPTED = """
[adjudication.debater]
kind = "recorded"
name = "scripted@1"
path = "speeches.jsonl"
columns = {{ problem = "asked", text = "text" }}
"""
SMOLLM = """
[adjudication.debater]
kind = "vllm"
model = {model}
prompt = "plain"
thinking = "none"
decoding = {{ temperature = 0.7, max_tokens = 96 }}
{engine}
"""


def write_run(folder: Path, planted: Sequence[Case], rounds: int, speakers: str, model: Path) -> Path:
    """Write the recipe with its inputs, run it, and return the run's folder."""
    from flows.cli.commands import run_recipe

    folder.mkdir(parents=True, exist_ok=True)
    speeches: dict[str, str] = {}
    for case in planted:
        for protocol in (Protocol.CONSULTANCY, Protocol.DEBATE):
            answers = str(case.reference), str(case.rival)
            debate = Debate("", KIND, case.statement, "en", answers, protocol)
            argued_by(debate, rounds, lambda request: speeches.setdefault(request.statement, speech(request)))
    tables: dict[str, list[dict[str, Any]]] = {
        "problems": [{"question": case.statement, "final": str(case.reference)} for case in planted],
        "attempts": [{"question": case.statement, "tries": [{"answer": str(case.rival)}] * 4} for case in planted],
        "speeches": [{"asked": asked, "text": text} for asked, text in speeches.items()],
    }
    for name, rows in tables.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    given = {"model": json.dumps(str(model)), "engine": ENGINE}
    speaker = (SCRIPTED if speakers == "scripted" else SMOLLM).format(**given)
    (folder / "recipe.toml").write_text(RECIPE.format(rounds=rounds, speaker=speaker, **given), encoding="utf-8")
    run_recipe(folder / "recipe.toml", [], folder / "run")
    return folder / "run"


def real(options: argparse.Namespace) -> None:
    """Print the table of the real judge."""
    from flows.pipelines.adjudicate import adjudicate
    from tests.real_model.smollm import smollm_folder

    planted = list(cases(options.problems))
    by_problem = {problem_id(case.statement): case for case in planted}
    for speakers in options.speakers:
        run = write_run(options.real.absolute() / speakers, planted, options.rounds, speakers, smollm_folder())
        for protocol in Protocol:
            if protocol is Protocol.DIRECT and speakers != options.speakers[0]:
                continue
            begun = time.process_time(), time.monotonic()
            result = adjudicate(run, [f"adjudication.protocol={protocol.value}"])
            judged = result.rows.filter(pl.col("score").is_not_null())
            scores = [of_right(by_problem[name], score) for name, score in judged.select("id", "score").iter_rows()]
            letters = [
                view if is_a else 1 - view
                for views in judged["views"]
                for view, is_a in zip(views, (True, True, False, False), strict=True)
            ]
            print(row(f"SmolLM2, {speakers}", protocol.value, scores), flush=True)
            print(
                f"  {dict(result.states)}; probability of A {sum(letters) / max(1, len(letters)):.2f}; "
                f"{time.process_time() - begun[0]:.0f} CPU s, {time.monotonic() - begun[1]:.0f} s",
                flush=True,
            )


def letters(options: argparse.Namespace) -> None:
    """Print the table of the real judge by its letters' probabilities; what all its prompts begin with is read once."""
    import copy

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from curation.prompts.debating import JUDGE_LETTER
    from tests.real_model.smollm import smollm_folder

    folder = smollm_folder()
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).float()
    marks = [tokenizer.encode(letter, add_special_tokens=False)[0] for letter in "AB"]

    def tokens(request: PromptRequest) -> list[int]:
        chat = JUDGE_LETTER.messages(request)
        return list(tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False))

    planted = list(cases(options.problems))
    one, other = (tokens(PromptRequest("", text, Domain.MATH, "en")) for text in "xy")
    shared = one[: next(place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)]
    with torch.inference_mode():
        begun_with = model(torch.tensor([shared]), use_cache=True).past_key_values
        for protocol in (Protocol.DIRECT, Protocol.CONSULTANCY, Protocol.DEBATE):
            scores, of_a, begun = [], [], time.process_time()
            for case in planted:
                answers = str(case.reference), str(case.rival)
                debate = argued_by(Debate("", KIND, case.statement, "en", answers, protocol), options.rounds, speech)
                assert debate is not None
                views = []
                for view in VIEWS:
                    whole = tokens(debate.view_request(view))
                    assert whole[: len(shared)] == shared
                    rest = whole[len(shared) :]
                    logits = model(torch.tensor([rest]), past_key_values=copy.deepcopy(begun_with)).logits[0, -1]
                    of_a.append(float(logits[marks].softmax(-1)[0]))
                    views.append(of_a[-1] if view.reference_is_a else 1 - of_a[-1])
                scores.append(of_right(case, sum(views) / len(views)))
            print(row("SmolLM2, letters", protocol.value, scores), flush=True)
            print(f"  mean p(A) {sum(of_a) / len(of_a):.3f}; {time.process_time() - begun:.0f} CPU s", flush=True)


def main() -> None:
    """Print the table of the scripted judges, or of the real one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--letters", action="store_true")
    parser.add_argument("--real", type=Path)
    parser.add_argument("--speakers", nargs="+", choices=("scripted", "smollm"), default=["scripted", "smollm"])
    options = parser.parse_args()
    print("| judge | protocol | rightly resolved (95 %) | mean probability of the right answer | sure: right |")
    print("|---|---|---|---|---|")
    if options.letters:
        letters(options)
    elif options.real is None:
        scripted(options)
    else:
        real(options)


if __name__ == "__main__":
    main()
