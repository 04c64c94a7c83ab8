"""Which stored attempts a step trains on, in which order, and how texts and chats become tokens again."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from curation.policies.chat_templates import StopTokens, folder_stop_tokens
from curation.policies.completions import TokenCompletion
from curation.records import AttemptKey, Completion, Domain, Outcome, PromptRequest, SourceError
from curation.storage.attempts import AttemptStore
from curation.thinking import THINK, ThinkingTags
from tests.training.engines.embedded.test_run import lines, small
from tests.training.optimisation.test_trainer import recipe
from training.config import ObjectiveSettings, StoredSettings
from training.embedded_model import WEIGHTS
from training.engines.embedded.run import train
from training.objectives.sft import SftSettings
from training.objectives.soft import SoftSettings
from training.optimisation.model import load_tokenizer
from training.recipe import CuratedData, EmbeddedData
from training.rewards import Reward
from training.rollouts.attempt_log import read_attempts
from training.rollouts.rollouts import Rollout
from training.rollouts.tasks import TrainingTask
from training.stored.batches import StoredBatches
from training.stored.general import GENERAL, GeneralRows, read_chats
from training.stored.supply import StoredSupply, stored_sources
from training.stored.tokens import EMPTY, OTHER_BEGINNING, OTHER_TEXT, TokenWriter

SOLVED = {"always": 8, "half": 4, "seldom": 1, "never": 0}
"""Correct attempts of 8, by problem."""


class Judge:
    def prompt_ids(self, task: TrainingTask) -> tuple[int, ...]:
        return (len(task.id),)

    async def verify(self, task: TrainingTask, completion: TokenCompletion, _: int) -> Rollout:
        right = completion.text.startswith("right")
        reward = Reward(correctness=float(right), correct=right)
        return Rollout(task.id, completion, reward, Outcome.CORRECT if right else Outcome.WRONG, "said")


class Letterwise:
    def completion(self, prompt_ids: tuple[int, ...], row: Any) -> TokenCompletion | str:
        if row["text"] == "strange":
            return "other_text"
        ids, finish = tuple(map(ord, row["text"])), row["finish"] or "stop"
        return TokenCompletion(prompt_ids, ids, (), (), row["text"], finish)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A curation run with 8 attempts a problem, some with the same text, one that no tokens give, and a rewriting."""
    store = AttemptStore(tmp_path / "attempts", AttemptKey("model@1", "solve@1", "a"))
    for problem, correct in (*SOLVED.items(), ("elsewhere", 8)):
        for index in range(8):
            text = f"right {index}" if index < correct else f"wrong {index % 2}"
            store.add([(problem, index, Completion(text, "stop", 7))])
    store.add([("half", 8, Completion("strange", "stop", 1)), ("half", 9, Completion("right 0", "stop", 7))])
    store.add([("half", 10, Completion(None, None, None, answer="3"))])
    store.compact()
    store.close()
    other = AttemptStore(tmp_path / "attempts", AttemptKey("model@1", "rewrite-choices@1", "a"))
    other.add([("half", 0, Completion("right, but a rewriting", "stop", 7))])
    other.close()
    return tmp_path


def supply(
    run: Path, settings: StoredSettings, objective: ObjectiveSettings | None = None, size: int = 4
) -> StoredSupply:
    tasks = {name: TrainingTask(PromptRequest(name, name, Domain.MATH, "en"), "1") for name in SOLVED}
    sources = stored_sources((str(run),), EmbeddedData(kind="embedded"), Path())
    made = StoredSupply(sources, tasks, Judge(), Letterwise(), settings, objective or SftSettings(), size, 1)
    asyncio.run(made.load())
    return made


def drawn(made: StoredSupply, start: int, count: int) -> list[tuple[str, tuple[str, ...]]]:
    groups = made.groups(start, count, 0)
    return [(group.problem, tuple(one.completion.text for _, one in group.rollouts)) for group in groups]


def test_every_attempt_is_trained_on_or_counted_under_its_reason(run: Path) -> None:
    made = supply(run, StoredSettings())
    assert made.counts.found == 42  # those without a text are no texts
    assert made.counts.used == 13
    assert made.counts.left_out == {"no_problem": 8, "not_correct": 19, "other_text": 1, "same_text": 1}
    assert {one.problem: one.pass_rate for one in made.problems} == {"always": 1, "half": 5 / 9, "seldom": 1 / 8}
    capped = supply(run, StoredSettings(per_problem=2))
    sizes = {one.problem: sum(map(len, one.chunks)) for one in capped.problems}
    assert sizes == {"always": 2, "half": 2, "seldom": 1}
    assert capped.counts.left_out["per_problem"] == 6 + 2


def test_an_epoch_has_every_chunk_once_in_an_order_of_its_own(run: Path) -> None:
    made = supply(run, StoredSettings())
    assert made.epoch_groups == 2 + 1 + 1
    first, second = drawn(made, 0, 4), drawn(made, 4, 4)
    assert Counter(first) == Counter(second)
    assert sum(len(texts) for _, texts in first) == 13
    orders = {tuple(drawn(made, 4 * epoch, 4)) for epoch in range(8)}
    assert len(orders) > 2


def test_hard_problems_come_in_proportion_to_what_they_lack(run: Path) -> None:
    made = supply(run, StoredSettings(hardness=2.0), size=8)
    seen = Counter(problem for problem, _ in drawn(made, 0, 1500))
    weights = {"half": (4 / 9) ** 2, "seldom": (7 / 8) ** 2}
    assert set(seen) == set(weights)  # what is always solved teaches nothing
    expected = weights["seldom"] / sum(weights.values())
    assert seen["seldom"] / 1500 == pytest.approx(expected, abs=4 * (expected * (1 - expected) / 1500) ** 0.5)


def test_soft_takes_wrong_attempts_too_and_leaves_single_ones_out(run: Path) -> None:
    made = supply(run, StoredSettings(), SoftSettings())
    texts = [(name, text) for name, chunk in drawn(made, 0, made.epoch_groups) for text in chunk]
    assert sorted(text for name, text in texts if name == "never") == ["wrong 0", "wrong 1"]
    assert sum(name == "half" for name, _ in texts) == 6
    assert made.counts.left_out["same_text"] == (1 + 2) + 5 + 6  # of half, seldom, never
    assert made.counts.found == made.counts.used + sum(made.counts.left_out.values())


def test_runs_are_those_that_the_sets_were_made_by(run: Path) -> None:
    data = CuratedData(kind="curated", folders=(str(run / "curated"),))
    for runs, folder in (((), Path()), ((run.name,), run.parent)):
        assert {source.run for source in stored_sources(runs, data, folder)} == {run}


def plan_of(steps: int, **settings: Any) -> StoredBatches:
    """Plan batches of 16 groups on 40 stored ones."""
    sizes = {"group_size": 4, "n_batch": 64}
    made = recipe(steps=steps, stored=settings, objective={"kind": "sft"}, collector=sizes)
    return StoredBatches(made, SimpleNamespace(epoch_groups=40))


@pytest.mark.parametrize(
    ("settings", "counts"),
    [
        ({"epochs": 1.0}, [16, 16, 16, 4, 4, 4]),
        ({"epochs": 1.0, "half_life": 1.0}, [16, 16, 16, 4, 2, 1]),
        ({"epochs": 0.0, "share": 0.99}, [15, 15, 15, 15, 15, 15]),
        ({"epochs": 0.5, "share": 0.0}, [16, 16, 0, 0, 0, 0]),
    ],
)
def test_the_plan_says_how_many_groups_of_a_step_are_stored(settings: dict[str, Any], counts: list[int]) -> None:
    plan = plan_of(6, **settings)
    assert [plan.count(step) for step in range(1, 7)] == counts
    assert [plan.before(step) for step in range(1, 8)] == [sum(counts[:step]) for step in range(7)]
    assert plan.steps == 6
    only = plan_of(100, only=True, epochs=2.0)
    assert only.steps == only.offline_steps == 5


def writer(tags: ThinkingTags = THINK) -> TokenWriter:
    tokenizer = load_tokenizer(WEIGHTS)
    return TokenWriter(tokenizer, folder_stop_tokens(WEIGHTS, tokenizer), tags)


def test_the_models_own_texts_become_tokens_that_read_the_same(teacher: Path) -> None:
    made = writer()
    prompt = made.prompt_ids([{"role": "user", "content": "What is 1 + 1?"}])
    rows = read_attempts(teacher, ["text", "finish"]).to_dicts()
    written = [made.completion(prompt, row) for row in rows]
    same = [(row, one) for row, one in zip(rows, written, strict=True) if not isinstance(one, str)]
    assert len(same) >= 0.8 * len(rows)  # a token that is no text of its own may be lost
    for row, one in same:
        assert (one.text, one.logprobs) == (row["text"], ())
        ids, logprobs = [*one.token_ids], [-1.0] * len(one.token_ids)
        known = made.completion(prompt, row | {"token_ids": ids, "logprobs": logprobs})
        assert not isinstance(known, str)
        assert ([*known.token_ids], [*known.logprobs]) == (ids, logprobs)


class Letters:
    """A tokenizer of one token a letter; 0 ends a response."""

    chat_template = None
    all_special_ids: tuple[int, ...] = (0,)

    def __call__(self, text: str, **_: object) -> dict[str, list[int]]:
        return {"input_ids": [ord(letter) for letter in text.replace("#", "")]}

    def decode(self, token_ids: list[int], **_: object) -> str:
        return "".join(chr(token) for token in token_ids if token)


@pytest.mark.parametrize(
    ("tags", "prompt", "text", "finish", "written"),
    [
        ("<think>", "Q\n", "<think>a</think>b", "stop", "<think>a</think>b\0"),
        ("<think>", "Q\n", "<think>a", "length", "<think>a"),
        ("[THINK]", "Q\n", "<think>a</think>b", "stop", "[THINK]a[/THINK]b\0"),
        ("<think>", "Q\n<think>\n", "<think>\na</think>b", "stop", "a</think>b\0"),
        ("<think>", "Q\n<think>\n", "a b", "stop", OTHER_BEGINNING),
        ("<think>", "Q\n", "<think>a # b</think>", "stop", OTHER_TEXT),
        ("<think>", "Q\n", "", "length", EMPTY),
        ("none", "Q\n", "a <think> b", "stop", "a <think> b\0"),
    ],
)
def test_a_text_is_written_as_the_model_would_have(
    tags: str, prompt: str, text: str, finish: str | None, written: str
) -> None:
    made = TokenWriter(Letters(), StopTokens((0,), 0, added=False), ThinkingTags.of(tags))
    found = made.completion(tuple(map(ord, prompt)), {"text": text, "finish": finish})
    assert (found if isinstance(found, str) else "".join(map(chr, found.token_ids))) == written


def test_instruction_data_walks_through_all_rows_in_an_order_of_each_pass(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    chats = [{"prompt": f"What is {n} + 1?", "response": f"It is {n + 1}."} for n in range(5)]
    last = chats.pop()
    messages = [{"role": "user", "content": last["prompt"]}, {"role": "assistant", "content": last["response"]}]
    path.write_text("\n".join(json.dumps(row) for row in [*chats, {"messages": messages}]), encoding="utf-8")
    rows = GeneralRows(path, writer(), seed=1)
    texts = [one.completion.text for one in rows.rollouts(0, 10)]
    assert len(rows) == 5
    assert sorted(texts[:5]) == sorted(texts[5:])
    assert texts[:5] != texts[5:]
    assert [one.completion.text for one in rows.rollouts(7, 3)] == texts[7:]
    assert all(one.problem == GENERAL and one.completion.prompt_ids for one in rows.rollouts(0, 5))


def test_an_answer_may_be_a_list_of_parts_with_thoughts_apart(tmp_path: Path) -> None:
    asked = {"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "text", "text": "2 + 2?"}]}
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "2 and 2"}]}
    answers = [
        {"content": [thought, {"type": "text", "text": "4"}]},
        {"content": "4", "reasoning_content": "2 and 2"},
        {"content": "[THINK]\n2 and 2\n[/THINK]\n4"},
    ]
    path, magistral = tmp_path / "chat.jsonl", ThinkingTags.of("[THINK]")
    rows = [{"messages": [asked, {"role": "assistant", **answer}]} for answer in answers]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    for user, answer in read_chats(path, magistral):
        assert user["content"] == "What is 2 + 2?"
        assert answer["content"] == "<think>\n2 and 2\n</think>\n4"
    writer = TokenWriter(Letters(), StopTokens((0,), 0, added=False), magistral)
    assert writer.after_prompt(tuple(map(ord, "Q\n")), answer["content"]) == "[THINK]\n2 and 2\n[/THINK]\n4"
    path.write_text(json.dumps({"messages": [asked, {"role": "assistant", "content": [{"type": "image"}]}]}))
    with pytest.raises(SourceError, match=r"chat\.jsonl, row 1.*image"):
        read_chats(path)


@pytest.mark.parametrize("content", ["", '{"messages": [{"role": "user", "content": "x"}]}', "no json", "[1]"])
def test_instruction_data_that_cannot_be_read_are_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(SourceError, match=r"chat\.jsonl"):
        GeneralRows(tmp_path / "chat.jsonl", writer(), seed=1)


def test_a_cold_start_has_its_share_of_instruction_data(teacher: Path, tmp_path: Path) -> None:
    rows = [json.dumps({"prompt": f"{n}?", "response": f"{n}."}) for n in range(4)]
    (tmp_path / "chat.jsonl").write_text("\n".join(rows), encoding="utf-8")
    stored = {"runs": (str(teacher),), "only": True, "general": "chat.jsonl"}
    changes = {"objective": {"kind": "sft"}, "evaluation": {"data": None}, "collector": {"max_staleness": 0}}
    train(small(steps=2, stored=stored, **changes, checks=False), tmp_path, tmp_path / "run")
    for row in lines(tmp_path / "run" / "batches.jsonl"):
        chats = sum(problem == GENERAL for problem, _ in row["stored"])
        traces = len(row["stored"]) - chats
        assert chats == max(round(traces / 9), 1)
