"""Proposals: accepted or refused, and tried again with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from curation.prompts import Prompt
from curation.questions.proposals import Proposal, refusal_text
from curation.records import ATTEMPT, Domain, PromptRequest

PROMPT = Prompt("double@1", "Double it.", lambda request: request.statement + refusal_text(request))


def accept(row: Mapping[str, Any], proposed: int, tool: int) -> dict[str, Any] | str:
    wanted = row["number"] * tool
    return {"doubled": proposed} if proposed == wanted else f"wrong: {proposed} is not {wanted}"


def read(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def question(**changed: Any) -> Proposal[int]:
    of: dict[str, Any] = {"name": "double", "title": "Double", "prompt": PROMPT, "read": read, "accept": accept}
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
            rows += [
                {"problem": request.id, "index": index, "text": text}
                for index, text in enumerate(self.said.get(last.replace(" ", "_"), ())[:wanted])
            ]
        return pl.DataFrame(rows, schema=ATTEMPT)


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
