"""`goldilocks detect-language` and `translate`, as functions on real files and a real curated folder."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from curation.config import TranslationSettings
from curation.export import CURATED
from curation.records import ConfigError, SourceError, problem_id
from flows.languages import DATA_FILE, FAILED_FILE, MADE_FILE, detect_language_file, open_translator, translate_set

PROBLEMS = [
    f"A box holds {number} red balls and 7 blue balls. How many balls are in the box?" for number in range(20, 32)
]
IN = {
    "fr": "Une boîte contient {} boules rouges et 7 boules bleues. Combien de boules y a-t-il dans la boîte ?",
    "de": "Eine Kiste enthält {} rote Bälle und 7 blaue Bälle. Wie viele Bälle sind in der Kiste?",
    "es": "Una caja contiene {} bolas rojas y 7 bolas azules. ¿Cuántas bolas hay en la caja?",
    "it": "Una scatola contiene {} palline rosse e 7 palline blu. Quante palline ci sono nella scatola?",
    "ru": "В коробке лежит {} красных шаров и 7 синих шаров. Сколько всего шаров в коробке?",
    "zh": "一个盒子里有 {} 个红球和 7 个蓝球。盒子里一共有多少个球？",
}


@pytest.fixture
def curated(tmp_path: Path) -> Path:
    """A run's folder with a curated set of twelve problems."""
    rows = [
        {
            **dict.fromkeys(CURATED.names()), "id": problem_id(text), "group": problem_id(text), "domain": "math",
            "statement": text, "answer": str(number + 7), "lang": "en", "source": "own", "row": number,
            "pass_rate": 0.5,
        }
        for number, text in enumerate(PROBLEMS, 20)
    ]  # fmt: skip
    home = tmp_path / "run" / "curated"
    (home / "data").mkdir(parents=True)
    pl.DataFrame(rows, schema=CURATED).write_parquet(home / "data" / "train-00000-of-00001.parquet")
    (home / "README.md").write_text("# A set\n\nText.\n", encoding="utf-8")
    (home / ".published.json").write_text(json.dumps({"verifier": "v", "files": {}}), encoding="utf-8")
    return tmp_path / "run"


def translations(path: Path, wrong: str | None = None) -> Path:
    lines = [
        {"id": problem_id(text), "target": lang, "text": form.format(number + 1 if lang == wrong else number)}
        for number, text in enumerate(PROBLEMS, 20)
        for lang, form in IN.items()
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_rows_gain_their_language(tmp_path: Path) -> None:
    texts = ["Combien de pommes reste-t-il ?", "$x^2$", "How many are left?", None]
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps({"n": n, "text": text}) + "\n" for n, text in enumerate(texts)))
    counts = detect_language_file(path, out)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["lang"] for row in rows] == ["fr", "undetermined", "en", "undetermined"]
    assert [row["n"] for row in rows] == [0, 1, 2, 3]
    assert 0 < rows[0]["confidence"] <= 1
    assert counts == {"undetermined": 2, "fr": 1, "en": 1}
    with pytest.raises(SourceError, match="no row has `body`"):
        detect_language_file(path, out, field="body")


def test_a_share_is_written_beside_the_set(curated: Path, tmp_path: Path) -> None:
    policy = open_translator(str(translations(tmp_path / "made.jsonl", wrong="it")))
    counts = translate_set(curated, policy, TranslationSettings(share=1.0, tries=2))
    home = curated / "curated"
    made = pl.read_parquet(home / DATA_FILE)
    assert made.schema == CURATED
    assert (counts["asked"], counts["translated"], counts["failed"]) == (12, 10, 2)
    assert made["lang"].value_counts().sort("lang").rows() == [(lang, 2) for lang in ("de", "es", "fr", "ru", "zh")]
    originals = pl.read_parquet(home / "data" / "train-00000-of-00001.parquet")
    assert set(made["group"]) < set(originals["id"])
    assert made["pass_rate"].null_count() == made.height
    failed = [json.loads(line) for line in (home / FAILED_FILE).read_text().splitlines()]
    assert {row["target"] for row in failed} == {"it"}
    assert all("numbers" in row["invariants"] for row in failed)
    assert json.loads((home / MADE_FILE).read_text())["counts"]["failed"] == 2
    marked = json.loads((home / ".published.json").read_text())["files"]
    assert DATA_FILE in marked


def test_a_second_translation_replaces_the_first(curated: Path, tmp_path: Path) -> None:
    for wrong in ("it", None):
        translate_set(
            curated, open_translator(str(translations(tmp_path / "made.jsonl", wrong))), TranslationSettings()
        )
    card = (curated / "curated" / "README.md").read_text()
    assert card.startswith("# A set\n\nText.\n")
    assert card.count("## Translations") == 1
    assert "1 of 12 problems" in card


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        open_translator(str(tmp_path / "none.jsonl"))
    with pytest.raises(ConfigError, match=r"\.toml"):
        open_translator("gpt")
    table = tmp_path / "policy.toml"
    table.write_text('kind = "oracle"\nmodel = "m"\n')
    with pytest.raises(ConfigError, match=r"oracle|kind"):
        open_translator(str(table))
    with pytest.raises(SourceError, match="holds no curated set"):
        translate_set(tmp_path, open_translator(str(translations(tmp_path / "t.jsonl"))), TranslationSettings())


def test_a_policy_table_opens_a_live_translator(tmp_path: Path) -> None:
    table = tmp_path / "policy.toml"
    table.write_text('[policy]\nkind = "endpoint"\nmodel = "m"\nrevision = "1"\nurls = ["http://localhost:1/v1"]\n')
    policy = open_translator(str(table))
    assert policy.key.prompt == "translate@1"
    assert policy.key.policy == "m@1"
