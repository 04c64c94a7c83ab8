"""Choosing problems and translating them through recorded translations: retries, failures, groups."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from curation.policies.recorded_translations import RecordedTranslations

from curation.config import TranslationSettings
from curation.prompts.translating import TRANSLATE, read_reply
from curation.records import Domain, PolicyError, PromptRequest, RequestRefused, problem_id
from curation.translation import RenderedPrompt, Translations, choose_problems, translate

ORIGINAL = "Anna buys 12 apples for $3 each. How much does she pay?"
FRENCH = "Anna achète 12 pommes à 3 $ chacune. Combien paie-t-elle ?"
WRONG = "Anna achète 13 pommes à 3 $ chacune. Combien paie-t-elle ?"
NAME = problem_id(ORIGINAL)
ROW = {"id": NAME, "group": NAME, "domain": "math", "statement": ORIGINAL, "answer": "36", "lang": "en", "meta": "{}"}


def recorded(folder: Path, *lines: dict[str, Any]) -> RecordedTranslations:
    path = folder / "translations.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return RecordedTranslations(path)


def through(policy: Any, rows: list[dict[str, Any]], target: str = "fr", **settings: Any) -> Translations:
    async def run() -> Translations:
        async with policy:
            return await translate(rows, {row["id"]: target for row in rows}, policy, TranslationSettings(**settings))

    return asyncio.run(run())


def line(text: str, name: str = NAME, target: str = "fr", **more: Any) -> dict[str, Any]:
    return {"id": name, "target": target, "text": text, **more}


def test_a_translation_keeps_its_group_and_its_original(tmp_path: Path) -> None:
    (row,) = through(recorded(tmp_path, line(FRENCH)), [ROW]).rows
    assert row["id"] == problem_id(FRENCH)
    assert row["group"] == NAME
    assert (row["lang"], row["statement"], row["raw_statement"], row["answer"]) == ("fr", FRENCH, ORIGINAL, "36")
    assert json.loads(row["meta"])["translation"]["of"] == NAME


def test_a_failure_is_tried_again(tmp_path: Path) -> None:
    found = through(recorded(tmp_path, line(WRONG), line(FRENCH)), [ROW])
    assert [row["statement"] for row in found.rows] == [FRENCH]
    assert found.counts == {"asked": 1, "translated": 1, "to.fr": 1, "retried": 1, "broke.numbers": 1}


def test_what_fails_every_try_stays_in_english_and_is_counted(tmp_path: Path) -> None:
    found = through(recorded(tmp_path, line(WRONG), line(ORIGINAL), line("")), [ROW])
    assert found.rows == []
    (failed,) = found.failed
    assert (failed.id, failed.target, failed.tries) == (NAME, "fr", 3)
    assert found.counts["failed"] == found.counts["asked"] == 1
    missing = through(recorded(tmp_path, line(FRENCH, target="it")), [ROW])
    assert missing.failed[0].why == "the policy gave no translation"


def test_the_reason_is_given_to_the_model(tmp_path: Path) -> None:
    asked: list[PromptRequest] = []

    class Listening(RecordedTranslations):
        async def answer(self, problem: PromptRequest, index: int) -> Any:
            asked.append(problem)
            return await super().answer(problem, index)

    through(Listening(recorded(tmp_path, line(WRONG), line(FRENCH)).path), [ROW])
    first, second = (TRANSLATE.messages(one)[-1]["content"] for one in asked)
    assert "French" in first
    assert "refused" not in first
    assert "missing from the translation: 12" in second
    assert WRONG in second


def test_answers_in_words_are_translated(tmp_path: Path) -> None:
    row = {**ROW, "statement": "On which day does the shop open again?", "answer": "Tuesday"}
    row["id"] = row["group"] = problem_id(row["statement"])
    text = "Quel jour le magasin rouvre-t-il ses portes ?"
    (made,) = through(recorded(tmp_path, line(text, row["id"], answer="mardi")), [row]).rows
    assert (made["answer"], made["raw_answer"]) == ("mardi", "Tuesday")
    assert through(recorded(tmp_path, line(text, row["id"])), [row]).counts["broke.answer"] == 1


def test_a_translation_back_is_checked_too(tmp_path: Path) -> None:
    back = line(ORIGINAL, f"{NAME}#back", "en")
    assert through(recorded(tmp_path, line(FRENCH), back), [ROW], back_translation=True).counts["translated"] == 1
    changed = line(ORIGINAL.replace("12", "14"), f"{NAME}#back", "en")
    found = through(recorded(tmp_path, line(FRENCH), changed), [ROW], back_translation=True)
    assert found.counts["broke.back_translation"] >= 1
    assert found.counts["failed"] == 1


def test_a_live_policy_is_asked_in_full(tmp_path: Path) -> None:
    asked: list[str] = []

    class Plain(RecordedTranslations):
        async def answer(self, problem: PromptRequest, index: int) -> Any:
            asked.append(problem.statement)
            return await super().answer(problem, index)

    policy = RenderedPrompt(Plain(recorded(tmp_path, line(FRENCH)).path))
    assert policy.key.prompt == TRANSLATE.version
    assert through(policy, [ROW]).counts["translated"] == 1
    assert asked[0].startswith(TRANSLATE.system)
    assert ORIGINAL in asked[0]


def test_replies_are_read_behind_the_thoughts() -> None:
    reply = "<think><translation>no</translation></think><translation>\nOui ?\n</translation> <answer>oui</answer>"
    assert read_reply(reply) == ("Oui ?", "oui", ())
    assert read_reply("Oui ?") == (None, None, ())
    assert read_reply("<think><translation>Oui ?</translation>") == (None, None, ())  # a draft
    assert read_reply("<translation>Q</translation><options>\nA) 1\nB) 2\n</options>")[2] == ("A) 1", "B) 2")


def test_a_file_without_its_columns_is_refused(tmp_path: Path) -> None:
    policy = recorded(tmp_path, {"id": NAME, "text": FRENCH})
    with pytest.raises(PolicyError, match="needs `id`"):
        asyncio.run(policy.answer(PromptRequest(NAME, ORIGINAL, Domain.MATH, "en", {"target": "fr"}), 0))


def as_table(rows: Iterable[tuple[str, str, str | None]]) -> pl.LazyFrame:
    return pl.LazyFrame(list(rows), {"id": pl.String, "group": pl.String, "lang": pl.String}, orient="row")


def test_the_share_is_exact_even_and_stable() -> None:
    rows = [(f"id{number}", f"id{number}", "en") for number in range(1200)]
    settings = TranslationSettings()
    found = choose_problems(as_table(rows), settings)
    assert len(found) == 120
    assert Counter(found.values()) == dict.fromkeys(settings.targets, 20)
    assert choose_problems(as_table(reversed(rows)), settings) == found
    further = [*rows, *((f"new{number}", f"new{number}", "en") for number in range(60))]
    more = choose_problems(as_table(further), settings)
    kept = [name for name, target in found.items() if more.get(name) == target]
    assert len(kept) > 0.7 * len(found)
    assert set(choose_problems(as_table(rows), TranslationSettings(seed=1))) != set(found)


def test_a_group_is_translated_once() -> None:
    rows = [("b", "g", "en"), ("a", "g", None), ("c", "h", "en"), ("d", "h", "fr")]
    assert list(choose_problems(as_table(rows), TranslationSettings(share=1.0))) == ["a"]


def test_a_refused_problem_stays_as_it_is_and_too_many_end_the_command(tmp_path: Path) -> None:
    class Refusing(RecordedTranslations):
        async def answer(self, problem: PromptRequest, index: int) -> Any:
            if problem.id != NAME:
                raise RequestRefused("400", f"http://server: 400 {problem.id} is poisoned.")
            return await super().answer(problem, index)

    recorded(tmp_path, line(FRENCH))
    others = [{**ROW, "id": f"other{number}", "group": f"other{number}"} for number in range(2)]
    found = through(Refusing(tmp_path / "translations.jsonl"), [ROW, others[0]])
    assert [row["statement"] for row in found.rows] == [FRENCH]
    (failed,) = found.failed
    assert (failed.id, failed.tries, failed.invariants) == ("other0", 0, ("refused",))
    assert "400 other0 is poisoned" in failed.why
    assert (found.counts["asked"], found.counts["failed"], found.counts["broke.refused"]) == (2, 1, 1)
    with pytest.raises(PolicyError, match="2 of 3 problems were refused"):
        through(Refusing(tmp_path / "translations.jsonl"), [ROW, *others])
