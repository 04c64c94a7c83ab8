"""`goldilocks detect-language` and `translate`, as functions on real files and a real curated folder."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from curation.config import TranslationSettings
from curation.prompts.translating import NAMES
from curation.publish.export import CURATED
from curation.records import ConfigError, SourceError, problem_id
from flows.publish.languages import (
    DATA_FILE,
    FAILED_FILE,
    MADE_FILE,
    REPLIES_FILE,
    detect_language_file,
    open_translator,
    translate_set,
)
from tests.curation.policies.test_endpoint import StandIn
from tests.flows.conftest import goldilocks

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
    table.write_text('[models.m]\nkind = "oracle"\nmodel = "m"\n')
    with pytest.raises(ConfigError) as caught:
        open_translator(str(table))
    assert str(caught.value) == (
        f"--policy {table}: `models.m.kind` = 'oracle': input should be one of 'recorded', 'vllm', 'endpoint', 'torch'."
    )
    table.write_text('[models.m]\nkind = "torch"\nmodel = "m"\n')
    with pytest.raises(ConfigError, match="kind `torch` cannot translate"):
        open_translator(str(table))
    table.write_text('policy = "m"\n')
    with pytest.raises(ConfigError, match=r"the file has no table \[models.NAME\]"):
        open_translator(str(table))
    with pytest.raises(ConfigError, match="there is no such file"):
        open_translator(str(tmp_path / "none.toml"))
    with pytest.raises(SourceError, match="holds no curated set"):
        translate_set(tmp_path, open_translator(str(translations(tmp_path / "t.jsonl"))), TranslationSettings())


def test_a_share_of_nothing_is_refused_in_a_sentence(curated: Path, tmp_path: Path) -> None:
    table = translations(tmp_path / "made.jsonl")
    said = goldilocks("translate", curated, "--policy", table, "--share", "0")
    assert said.status == 1
    assert "goldilocks translate: `share` = 0.0: input should be greater than 0." in said.err


def test_a_solver_without_attempts_is_refused(curated: Path, tmp_path: Path) -> None:
    table = translations(tmp_path / "made.jsonl")
    said = goldilocks("translate", curated, "--policy", table, "--solver", tmp_path / "s.toml")
    assert said.status == 1
    assert "s.toml: nothing is solved at `--back-solve 0`; give attempts, such as 8." in said.err


def test_a_policy_table_opens_a_live_translator(tmp_path: Path) -> None:
    table = tmp_path / "policy.toml"
    table.write_text(
        '[models.newer]\nkind = "endpoint"\nmodel = "m"\nrevision = "1"\nurls = ["http://localhost:1/v1"]\n'
    )
    policy = open_translator(str(table))
    assert policy.key.prompt == "translate@1"
    assert policy.key.policy == "m@1"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Path]:
    """A policy's table for a real server process that is only sometimes a translator; its journal lies beside it.

    French it gets wrong until it is told what was wrong; German and Spanish are right at once; Italian comes back
    unmarked, Russian in English, Chinese solved.
    """
    heads = {lang: f"into {NAMES[lang]}" for lang in IN}
    says: list[list[str]] = []
    for number, text in enumerate(PROBLEMS, 20):
        said = {lang: f"<translation>{form.format(number)}</translation>" for lang, form in IN.items()}
        says += [[heads["fr"], text, f"missing from the translation: {number}", said["fr"]]]
        said["fr"] = f"<translation>{IN['fr'].format(number + 100)}</translation>"
        said["it"] = IN["it"].format(number)
        said["ru"] = f"<translation>{text}</translation>"
        said["zh"] = f"<translation>{IN['zh'].format(number)} 答案：{number + 7}</translation>"
        says += [[heads[lang], text, reply] for lang, reply in said.items()]
    (tmp_path / "says.json").write_text(json.dumps(says), encoding="utf-8")
    server = StandIn(tmp_path / "journal.jsonl", says=tmp_path / "says.json")
    table = tmp_path / "policy.toml"
    table.write_text(
        f'[models.m]\nkind = "endpoint"\nmodel = "m"\nrevision = "1"\nurls = ["{server.url}"]\n'
        "[decoding]\nmax_tokens = 512\n"
    )
    yield table
    server.stop()


def test_a_live_translator_is_refused_retried_and_left(curated: Path, served: Path) -> None:
    said = goldilocks("translate", curated, "--policy", served, "--share", "1.0")
    assert said.status == 0, said.err
    home = curated / "curated"
    made = pl.read_parquet(home / DATA_FILE)
    failed = [json.loads(line) for line in (home / FAILED_FILE).read_text().splitlines()]
    counts = json.loads((home / MADE_FILE).read_text())["counts"]
    assert Counter(made["lang"]) == {"fr": 2, "de": 2, "es": 2}
    assert Counter(one["target"] for one in failed) == {"it": 2, "ru": 2, "zh": 2}
    assert {one["id"] for one in failed} | set(made["group"]) == {problem_id(text) for text in PROBLEMS}
    assert (counts["asked"], counts["translated"], counts["failed"], counts["retried"]) == (12, 6, 6, 2)
    assert all(one["tries"] == 3 and one["why"] for one in failed)
    named = {one["target"]: set(one["invariants"]) for one in failed}
    assert named["it"] == {"reply"}
    assert {"language", "leftovers"} <= named["ru"]
    assert "added_solution" in named["zh"]
    asked = [json.loads(line) for line in served.with_name("journal.jsonl").read_text().splitlines()]
    assert sum(one["event"] == "answered" for one in asked) == 2 * (2 + 1 + 1 + 3 + 3 + 3)
    meta = {row["lang"]: json.loads(row["meta"])["translation"] for row in made.to_dicts()}
    assert (meta["fr"]["tries"], meta["de"]["tries"], meta["fr"]["by"]) == (2, 1, "m@1")
    assert said.out.splitlines() == [
        f"6 of 12 chosen problems translated (de 2, es 2, fr 2), 2 of them at a later try: {home / DATA_FILE}",
        f"6 stay in English: {home / FAILED_FILE}",
        "broken over all tries: numbers 8, added_solution 6, language 6, leftovers 6, reply 6",
    ]


def test_what_a_live_translator_said_is_not_asked_again(curated: Path, served: Path) -> None:
    def asked() -> int:
        journal = served.with_name("journal.jsonl").read_text().splitlines()
        return sum(json.loads(line)["event"] == "answered" for line in journal)

    home = curated / "curated"
    assert goldilocks("translate", curated, "--policy", served, "--share", "1.0").status == 0
    first, replies = asked(), (home / REPLIES_FILE).read_bytes()
    assert len(replies.splitlines()) == first
    (home / REPLIES_FILE).write_bytes(replies[:-20])  # killed in the middle of a line
    assert goldilocks("translate", curated, "--policy", served, "--share", "1.0").status == 0
    assert asked() == first + 1
    assert json.loads((home / MADE_FILE).read_text())["counts"]["asked"] == 12


def test_a_setting_without_an_option_is_changed_by_set(curated: Path, tmp_path: Path) -> None:
    made = translations(tmp_path / "made.jsonl")
    command = ("translate", curated, "--policy", made, "--share", "1.0", "--set", "targets=['de']")
    assert goldilocks(*command).status == 0
    about = json.loads((curated / "curated" / MADE_FILE).read_text())
    assert about["settings"]["targets"] == ["de"]
    assert {name for name in about["counts"] if name.startswith("to.")} == {"to.de"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--reads", "3"], "--reads 3: no model reads the translations; name one with `--reader FILE.toml`."),
        (["--set", "reader_threshold=1.0"], "--set reader_threshold=1.0: no model reads the translations; name one"),
        (["--set", "readers=2"], "readers"),
        (["--set", "reads = 3"], "--set reads = 3: no model reads the translations; name one"),
        (["--overrule"], "--overrule: no model reads the translations; name one with `--reader FILE.toml`."),
        (["--reader", "r.toml", "--overrule"], "`overrule` needs the word of at least 2 reads, not of `reads` = 1"),
        (
            ["--reader", "r.toml", "--reads", "0"],
            "goldilocks translate: `reads` = 0: input should be greater than or equal to 1.",
        ),
        (
            ["--reader", "votes.jsonl"],
            "--reader votes.jsonl: give the .toml file of the model that reads translations.",
        ),
        (["--reader", "none.toml"], "--reader none.toml: there is no such file"),
    ],
)
def test_what_cannot_be_meant_of_a_reader_is_refused(
    curated: Path, tmp_path: Path, given: list[str], said: str
) -> None:
    told = goldilocks("translate", curated, "--policy", translations(tmp_path / "made.jsonl"), *given)
    assert told.status == 1
    assert said in told.err
    assert not (curated / "curated" / DATA_FILE).exists()


def test_a_reader_refuses_and_overrules_and_both_are_said(curated: Path, tmp_path: Path) -> None:
    """French ones are called different; German ones exchange their numbers, and the reader says no harm."""
    made = translations(tmp_path / "made.jsonl")
    turned = "Eine Kiste enthält 7 rote Bälle und {} blaue Bälle. Wie viele Bälle sind in der Kiste?"
    lines = [json.loads(line) for line in made.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if line["target"] == "de":
            line["text"] = turned.format(line["text"].split()[3])
    made.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    says = [["</translation", "Une boîte", "DIFFERENCE: The box is French.\nVERDICT: DIFFERENT"]]
    says += [
        ["</suspicion", "changed places", "DIFFERENCE: none\nVERDICT: SAME"],
        ["</translation", "", "VERDICT: SAME"],
    ]
    (tmp_path / "says.json").write_text(json.dumps(says), encoding="utf-8")
    server = StandIn(tmp_path / "journal.jsonl", says=tmp_path / "says.json")
    table = tmp_path / "reader.toml"
    table.write_text(
        f'[models.m]\nkind = "endpoint"\nmodel = "m"\nrevision = "1"\nurls = ["{server.url}"]\n'
        "[decoding]\nmax_tokens = 512\n"
    )
    command = ["translate", curated, "--policy", made, "--share", "1.0", "--reader", table]
    command += ["--reads", "2", "--overrule"]
    try:
        said = goldilocks(*command)
        assert said.status == 0, said.err
        journal = (tmp_path / "journal.jsonl").read_text()
        assert goldilocks(*command).out == said.out
        assert (tmp_path / "journal.jsonl").read_text() == journal  # votes are kept
    finally:
        server.stop()
    home = curated / "curated"
    assert "the reader, over all tries: overruled 2, refused 2" in said.out
    rows = pl.read_parquet(home / DATA_FILE)
    metas = {row["lang"]: json.loads(row["meta"])["translation"] for row in rows.to_dicts()}
    assert "fr" not in metas
    assert metas["de"]["reader"] == {
        "asked": 2, "same": 2, "different": 0, "decided": True, "overruled": ["order"]
    }  # fmt: skip
    assert metas["zh"]["reader"] == {"asked": 2, "same": 2, "different": 0, "decided": True}
    failed = [json.loads(line) for line in (home / FAILED_FILE).read_text().splitlines()]
    assert [one["why"] for one in failed if one["target"] == "fr"] == ["reader: The box is French."] * 2
    about = json.loads((home / MADE_FILE).read_text())
    assert about["reader"] == {"policy": "m@1", "prompt": "reading@1", "sampling": about["reader"]["sampling"]}
    assert "read by `m@1` with `reading@1` (overruled 2, refused 2)" in (home / "README.md").read_text()
