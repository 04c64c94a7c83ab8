"""Recorded attempts: every shape of file, matched by the problem's id, nothing handed out that was not asked for."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from curation.config import RecordedModel, to_plain
from curation.policies.recorded import Recorded
from curation.records import (
    Completion,
    Domain,
    GoldilocksError,
    PolicyError,
    PromptRequest,
    RequestRefused,
    SourceError,
    problem_id,
)
from tests.curation.tables import write_lines

FILE = "attempts.jsonl"
SUM, PRODUCT = "What is 2 + 3?", "What is 2 * 3?"
RUNS = [
    {"by": "big", "response": "So \\boxed{5}", "ok": True},
    {"by": "small", "response": "\\boxed{6}", "ok": False},
    {"by": "big", "response": None, "ok": 0},
    {"by": "big", "response": "five", "ok": None},
]
NESTED = [
    {"question": SUM, "runs": RUNS},
    {"question": PRODUCT, "runs": [{"by": "small", "response": "6", "ok": 1}]},
    {"question": "Nobody tried.", "runs": []},
    {"question": "Nobody tried either.", "runs": None},
]
NESTED_MAP = {"problem": "question", "attempts": "runs", "text": "response", "label": "ok"}
FLAT = [{"question": row["question"], "run": run} for row in NESTED for run in row["runs"] or []]
FLAT_MAP = {"problem": "question", "text": "run.response", "label": "run.ok"}


def policy(folder: Path, columns: Mapping[str, Any], **more: Any) -> Recorded:
    table = {"kind": "recorded", "name": "weak@1", "path": FILE, "columns": columns, **more}
    return Recorded(RecordedModel.model_validate(to_plain(table)), folder)


def prompted(text: str) -> PromptRequest:
    return PromptRequest(problem_id(text), text, Domain.MATH, "en")


def answers(one: Recorded, problem: PromptRequest, indices: Sequence[int]) -> list[tuple[int, Completion]]:
    """What the policy has of the wanted attempts."""

    async def ask() -> list[tuple[int, Completion]]:
        async with one as policy:
            found = [(index, await policy.answer(problem, index)) for index in indices]
        return [(index, answered) for index, answered in found if answered is not None]

    return asyncio.run(ask())


def handed(one: Recorded, *wanted: tuple[str, Sequence[int]]) -> list[tuple[str, int, str | None, bool | None]]:
    return [
        (text, index, answered.text, answered.label)
        for text, indices in wanted
        for index, answered in answers(one, prompted(text), indices)
    ]


EVERYTHING = [
    (SUM, 0, "So \\boxed{5}", True),
    (SUM, 1, "\\boxed{6}", False),
    (SUM, 2, None, False),
    (SUM, 3, "five", None),
    (PRODUCT, 0, "6", True),
]


@pytest.mark.parametrize(("rows", "columns"), [(NESTED, NESTED_MAP), (FLAT, FLAT_MAP)], ids=["nested", "flat"])
def test_nested_and_flat_files_are_the_same(
    tmp_path: Path, rows: list[dict[str, Any]], columns: dict[str, str]
) -> None:
    write_lines(tmp_path / FILE, rows)
    one = policy(tmp_path, columns)
    one.check()
    assert handed(one, (SUM, range(4)), (PRODUCT, range(4)), ("Nobody tried.", range(4))) == EVERYTHING
    assert one.attempts == 5


def test_the_problem_is_matched_by_its_id(tmp_path: Path) -> None:
    rows = [
        {"question": "What  is\n2 + 3? ", "response": "5"},
        {"question": "what is 2 + 3?", "response": "another problem"},
        {"question": "What is 2 + 3?", "response": "again"},
    ]
    write_lines(tmp_path / FILE, rows)
    one = policy(tmp_path, {"problem": "question", "text": "response"})
    assert handed(one, (SUM, range(9))) == [(SUM, 0, "5", None), (SUM, 1, "again", None)]


def test_recorded_answers_beside_or_instead_of_texts(tmp_path: Path) -> None:
    rows = [{"p": SUM, "final": 5}, {"p": SUM, "final": 5.5}, {"p": SUM, "final": "5"}, {"p": SUM, "final": None}]
    write_lines(tmp_path / FILE, rows)
    made = answers(policy(tmp_path, {"problem": "p", "answer": "final"}), prompted(SUM), range(4))
    assert [(one.text, one.answer) for _, one in made] == [(None, "5"), (None, "5.5"), (None, "5"), (None, None)]
    write_lines(tmp_path / FILE, [{"p": SUM, "final": str(2**70), "out": "text"}])
    both = policy(tmp_path, {"problem": "p", "answer": "final", "text": "out"})
    ((_, answered),) = answers(both, prompted(SUM), [0])
    assert (answered.text, answered.answer) == ("text", str(2**70))


TEXT = {"problem": "question", "text": "response"}
NO_TEXT = {**NESTED_MAP, "text": "output"}


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({**TEXT, "problem": "prompt", "attempts": "runs"}, "no row has `prompt`; there are: question"),
        ({**TEXT, "attempts": "tries"}, "no row has `tries`; there are: question, "),
        (NO_TEXT, "inside `runs`: no row has `output`; there are: by, response, ok."),
    ],
)
def test_a_missing_column_lists_what_is_there(tmp_path: Path, columns: dict[str, str], said: str) -> None:
    write_lines(tmp_path / FILE, NESTED)
    one = policy(tmp_path, columns)
    for ask in (one.check, lambda: handed(one, (SUM, [0]))):
        with pytest.raises(SourceError) as caught:
            ask()
        assert str(caught.value).startswith(f"recorded attempts {tmp_path / FILE}")
        assert said in str(caught.value)


@pytest.mark.parametrize("runs", ["5", [["5"]], 7])
def test_attempts_of_another_shape_are_refused(tmp_path: Path, runs: Any) -> None:
    write_lines(tmp_path / FILE, [{"question": SUM, "runs": runs}])
    one = policy(tmp_path, {**TEXT, "attempts": "runs"})
    for ask in (one.check, lambda: handed(one, (SUM, [0]))):
        with pytest.raises(GoldilocksError, match="runs"):
            ask()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"p": 5}, "row 1: `p` is not text: 5"),
        ({"p": SUM, "ok": "true"}, r"row 1: `ok` should be true or false, but is .*true"),
        ({"p": SUM, "ok": 2}, r"row 1: `ok` should be true or false, but is .*2"),
        ({"p": SUM, "ok": [True]}, r"row 1: `ok` should be true or false, but is .*True"),
    ],
)
def test_a_value_of_a_wrong_type_is_named_by_its_row(tmp_path: Path, row: dict[str, Any], said: str) -> None:
    write_lines(tmp_path / FILE, [{"p": SUM, "out": "5", "ok": True}, {**row, "out": "x"}])
    with pytest.raises(PolicyError, match=said):
        handed(policy(tmp_path, {"problem": "p", "text": "out", "label": "ok"}), (SUM, [0]))


def test_a_text_that_cannot_be_read_is_refused_by_its_row_and_the_others_are_handed_out(tmp_path: Path) -> None:
    image = [{"type": "image_url", "image_url": "x"}]
    write_lines(tmp_path / FILE, [{"p": SUM, "out": [{"type": "text", "text": "5"}]}, {"p": SUM, "out": image}])
    one = policy(tmp_path, {"problem": "p", "text": "out"})
    assert handed(one, (SUM, [0])) == [(SUM, 0, "5", None)]
    with pytest.raises(RequestRefused, match=r"attempts.jsonl, row 1, `out`: .* unknown type") as refused:
        handed(one, (SUM, [1]))
    assert refused.value.kind == "unusable"


def test_the_key_follows_the_content_and_the_settings(tmp_path: Path) -> None:
    write_lines(tmp_path / FILE, NESTED)
    columns = {"problem": "question", "attempts": "runs", "text": "response"}
    first = policy(tmp_path, columns).key
    assert (first.policy, first.prompt) == ("weak@1", "recorded")
    assert re.fullmatch("[0-9a-f]{12}", first.sampling)
    assert policy(tmp_path, columns).key == first
    assert policy(tmp_path, {**columns, "label": "ok"}).key != first
    (tmp_path / "moved").mkdir()
    write_lines(tmp_path / "moved" / FILE, NESTED)
    assert policy(tmp_path / "moved", columns).key == first
    write_lines(tmp_path / FILE, NESTED[:1])
    assert policy(tmp_path, columns).key != first


def test_attempts_in_other_tags_are_handed_out_in_the_form_of_the_house(tmp_path: Path) -> None:
    write_lines(tmp_path / FILE, [{"question": SUM, "run": "[THINK]2 + 3[/THINK]\\boxed{5}"}])
    columns = {"problem": "question", "text": "run"}
    as_written, read = policy(tmp_path, columns), policy(tmp_path, columns, thinking="[THINK]")
    assert handed(as_written, (SUM, [0]))[0][2] == "[THINK]2 + 3[/THINK]\\boxed{5}"
    assert handed(read, (SUM, [0]))[0][2] == "<think>2 + 3</think>\\boxed{5}"
    assert as_written.key != read.key
