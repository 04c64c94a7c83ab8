"""Proposals: accepted or refused and tried again with the reason; rewritings and test programs."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from curation.prompts import Prompt
from curation.questions.proposals import Proposal, refusal_text
from curation.questions.rewriting import ProposedRewriting, accept, read_rewriting, refusal
from curation.questions.test_programs import TestPrograms, programs_in, validators_in
from curation.records import ATTEMPT, Domain, PromptRequest
from curation.verify.math_judge import MathJudge
from tests.curation.tables import check_refused, check_table, frame

PROMPT = Prompt("double@1", "Double it.", lambda request: request.statement + refusal_text(request))


def accept_double(row: Mapping[str, Any], proposed: int, tool: int) -> dict[str, Any] | str:
    wanted = row["number"] * tool
    return {"doubled": proposed} if proposed == wanted else f"wrong: {proposed} is not {wanted}"


def read(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def question(**changed: Any) -> Proposal[int]:
    of: dict[str, Any] = {"name": "double", "title": "Double", "prompt": PROMPT, "read": read, "accept": accept_double}
    of |= {"result": pl.Schema({"doubled": pl.Int64()}), "select": lambda *_: None, "apply": lambda *_: {}}
    return Proposal(**{**of, **changed})


class Model:
    """Answers by the whole message; notes what it is asked."""

    def __init__(self, **said: Sequence[str]) -> None:
        self.said, self.messages = said, list[str]()

    def __call__(self, requests: Sequence[PromptRequest], wanted: int) -> pl.DataFrame:
        rows = []
        for request in requests:
            message = PROMPT.messages(request)[-1]["content"]
            self.messages.append(message)
            last = message.splitlines()[-1].split(": ")[-1]
            texts = self.said.get(last.replace(" ", "_"), ())[:wanted]
            rows += [{"problem": request.id, "index": index, "text": text} for index, text in enumerate(texts)]
        return frame(ATTEMPT, *rows)


ROWS = pl.DataFrame({"id": ["two", "three", "four"], "number": [2, 3, 4]})
REQUESTS: list[PromptRequest | str] = [
    PromptRequest("two", "two", Domain.MATH, "en"),
    PromptRequest("three", "three", Domain.MATH, "en"),
    "it is not asked",
]


def test_a_refused_proposal_is_tried_again_with_its_reason() -> None:
    model = Model(two=["4"], three=["5"], **{"5_is_not_6": ["6"]})
    found = question(tries=3).answers(ROWS, REQUESTS, model, tool=2)
    assert found.select("id", "tries", "text", "accepted", "why", "doubled").rows() == [
        ("two", 1, "4", True, None, 4),
        ("three", 2, "6", True, None, 6),
        ("four", 0, None, False, "it is not asked", None),
    ]
    assert model.messages == [
        "two",
        "three",
        "three\n\nAn earlier answer was refused:\n\n5\n\nWhat was wrong with it: wrong: 5 is not 6",
    ]


def test_what_is_accepted_is_reviewed_together_and_may_be_refused() -> None:
    model, seen = Model(two=["4"], three=["6"], six_is_odd=["6"]), list[list[int]]()

    def review(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], _tool: int) -> list[str | None]:
        seen.append([result["doubled"] for _, result in pairs])
        return ["review: six is odd" if result["doubled"] == 6 and len(seen) == 1 else None for _, result in pairs]

    made = question(review=review, tries=2).answers(ROWS, REQUESTS, model, tool=2)
    assert seen == [[4, 6], [6]]
    assert made["accepted"].to_list() == [True, True, False]
    assert made["tries"].to_list()[:2] == [1, 2]


QUESTION = "Which of the following numbers is divisible by 7?"
OPTIONS = ("45", "56", "65", "75")
LISTED = "Which one of the numbers 45, 56, 65 and 75 is divisible by 7?"


def test_what_was_lost_changed_or_given_away_is_refused() -> None:
    def refused(statement: str) -> None:
        raise ValueError(refusal(QUESTION, OPTIONS, 1, statement) or "")

    check_refused("rewritings refused", refused, ValueError)
    assert refusal(QUESTION, OPTIONS, 1, LISTED) is None


def test_the_writers_own_answer_must_be_the_right_option() -> None:
    row = {"id": "p", "choice": QUESTION, "options": list(OPTIONS), "right": 1, "lang": "en"}
    with MathJudge(1) as judge:
        assert accept(row, ProposedRewriting(LISTED, r"\boxed{56}"), judge) == {"statement": LISTED, "answer": "56"}
        assert accept(row, ProposedRewriting(LISTED, r"\boxed{65}"), judge) == (
            "the model's answer to its rewriting is not the right option"
        )


def test_a_rewriting_is_read_behind_the_thoughts() -> None:
    text = f"<think><problem>no</problem></think><problem>\n{LISTED}\n</problem>\n7 * 8 = 56, so \\boxed{{56}}."
    assert read_rewriting(text) == ProposedRewriting(LISTED, "7 * 8 = 56, so \\boxed{56}.")
    check_table("no rewriting", read_rewriting)


def test_programs_of_a_response() -> None:
    said = "<think>```python\nno\n```</think>\n```python\nprint(1)\n```\nand\n```py\nassert input()\n```\n"
    assert programs_in(said) == TestPrograms("print(1)\n", "assert input()\n")
    assert programs_in("```python\nprint(1)\n```") == TestPrograms("print(1)\n", None)
    assert programs_in("no code") is None
    (validator,) = validators_in([said, said, "no code"])
    assert (validator.sources, validator.accepts) == ({"validator1.py": "assert input()\n"}, 0)
    assert programs_in("<think>```python\nprint(1)\n```") is None  # a draft
    assert programs_in("- One:\n  ```python\n  print(1)\n  ```") == TestPrograms("print(1)\n", None)
