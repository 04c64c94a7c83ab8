"""Translations solved back by the embedded model, through `translate`: no stand-in says the answers here.

The rules on texts let both translations pass: the numbers are the same, and sum and difference are words that none of
them knows. The model answers the sum alike in English and French, and the difference otherwise.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from curation.config import Decoding, TorchPolicySettings, TranslationSettings
from curation.policies.recorded_translations import RecordedTranslations
from curation.records import problem_id
from curation.translation import Translations, translate
from training.embedded_model import problems
from training.generation.torch_policy import TorchPolicy

WEIGHTS = Path(problems.__file__).parent / "weights"
ORIGINAL = "Find the sum of 23 and 14."
ROW = {"id": problem_id(ORIGINAL), "domain": "math", "statement": ORIGINAL, "answer": "37", "lang": "en", "meta": "{}"}


def solved_back(folder: Path, french: str, attempts: int) -> Translations:
    """Translate the row as recorded; the embedded model solves both texts."""
    path = folder / "translations.jsonl"
    path.write_text(json.dumps({"id": ROW["id"], "target": "fr", "text": french}) + "\n", encoding="utf-8")
    solver = TorchPolicy(
        TorchPolicySettings(
            model=str(WEIGHTS), in_flight=12, decoding=Decoding(temperature=1.0, max_tokens=200, seed=3)
        ),
        folder,
    )

    async def run() -> Translations:
        async with RecordedTranslations(path) as policy, solver:
            settings = TranslationSettings(tries=1, back_solving=attempts)
            return await translate([ROW], {ROW["id"]: "fr"}, policy, settings, solver=solver)

    return asyncio.run(run())


def test_a_true_translation_is_solved_alike_and_kept(tmp_path: Path) -> None:
    (row,) = solved_back(tmp_path, "Quelle est la somme de 23 et de 14 ?", 6).rows
    record = json.loads(row["meta"])["translation"]["back_solving"]
    assert record["across"] > 0
    assert record["chance"] > 0.05


def test_a_translation_that_asks_for_the_difference_is_refused(tmp_path: Path) -> None:
    asks_otherwise = "Quelle est la différence entre 23 et 14 ?"
    found = solved_back(tmp_path, asks_otherwise, 6)
    assert found.rows == []
    assert found.failed[0].invariants == ("back_solving",)
    assert "0% across" in found.failed[0].why
