"""The sources of a run: which rows are taken, a source that is left out, and the rows' licences."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from curation.storage.stages import read_table
from tests.flows.conftest import Tiny, goldilocks, published, recipe_with, refusal, stamps, tries, write_jsonl
from tests.flows.run.folders import card, contents, run

RECIPE = (
    recipe_with(
        'name="chosen"',
        "shard_rows=2000",
        "sources.0.where=\"valid = 'Yes'\"",
        "sources.0.quota=3",
        'sources.0.join={path="solutions.jsonl", on="uid", columns=["worked"], into="solutions"}',
        "stage1.band.attempts=2",
    )
    + """
[[sources]]
name = "gone"
kind = "jsonl"
path = "gone.jsonl"
license = "MIT"
columns = { statement = "question", answer = "final" }
"""
)
BROKEN, ODD = '{"question": "What is 2?", "final": NaN}\n', '{"question": "What is 3?", "final": ["3"]}\n'
SUMS = {f"What is {number} plus {number} times 3?": str(4 * number) for number in range(9, 18)}
LAST = "What is 9 plus 9 times 3?"


def write_attempts(folder: Path) -> None:
    write_jsonl(folder / "weak.jsonl", [tries(text, value, f"{value} 1") for text, value in SUMS.items()])


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe of eight sums, six of them valid, with another source whose file is missing."""
    rows = [
        {"question": text, "final": value, "valid": "No" if at in (0, 5) else "Yes", "uid": at}
        for at, (text, value) in enumerate(one for one in SUMS.items() if one[0] != LAST)
    ]
    write_jsonl(tmp_path / "problems.jsonl", rows)
    write_jsonl(tmp_path / "solutions.jsonl", [{"uid": row["uid"], "worked": f"see {row['final']}"} for row in rows])
    write_attempts(tmp_path)
    (tmp_path / "chosen.toml").write_text(RECIPE)
    return tmp_path / "chosen.toml"


@pytest.mark.slow
def test_a_source_that_is_gone_is_a_sentence_and_may_be_left_out(recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    why = refusal("run", recipe, "--out", folder)
    assert "source gone: no file at" in why
    assert 'set `left_out = ["gone"]`; the card will state it' in why
    left_out = 'left_out=["gone"]'
    run(recipe, folder, left_out)
    assert "source gone: left out" in goldilocks("run", recipe, "--out", folder, "--set", left_out, "--dry").out
    state = json.loads((folder / "stages" / "01-sources" / "sources.json").read_text())["school"]
    assert (state["rows"], state["where"], state["drawn"], state["joined"], state["commit"]) == (8, 6, 3, 3, None)
    for words in (
        "| gone | MIT | left out: not read | 0 | 0 |",
        "The recipe names gone too; by `left_out` this run did not read it.",
        f"digest `{state['digest'][:16]}`",
        "Of school, 8 rows seen: where `valid = 'Yes'`, drawn by a quota, joined with solutions.jsonl (3 rows have a ",
    ):
        assert words in card(folder)
    taken = published(folder, "data")
    assert taken.height == 3
    assert not {0, 5} & set(taken["row"])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ('left_out=["goon"]', "`left_out` names 'goon', which is no source; there are: school, gone"),
        ('left_out=["school", "gone"]', "nothing would be read"),
        ('sources=[{name="packages", kind="kattis", path="nothing"}]', "there is no folder"),
        ('sources=[{name="packages", kind="kattis", path="empty"}]', "holds no problem package"),
    ],
)
def test_sources_that_cannot_be_read_are_refused(setting: str, message: str, recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    flow = ("--set", "flow=curate-code") if "kattis" in setting else ()
    assert message in refusal("run", recipe, "--out", tmp_path / "run", "--set", setting, *flow)


@pytest.mark.slow
def test_bad_rows_are_set_aside_and_counted_next_to_a_source_with_none(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "gone.jsonl").write_text(json.dumps({"question": LAST, "final": SUMS[LAST]}) + "\n" + BROKEN + ODD)
    folder = tmp_path / "run"
    run(recipe, folder, "sources.1.bad_rows=100")
    aside = read_table(folder / "stages" / "01-sources", "quarantine").select("raw", "file", "line").rows()
    assert aside == [(BROKEN.encode(), "gone.jsonl", 2), (ODD.encode(), "gone.jsonl", 3)]
    dropped = published(folder, "dropped").filter(reason="bad_row")
    assert dropped["row"].to_list() == [1, 2]
    assert dropped["evidence"][0].startswith("gone.jsonl, line 2: not JSON (")
    assert "bad_row" in goldilocks("status", folder).out
    assert set(published(folder, "data")["source"]) == {"school", "gone"}


# --- licences: each row's own, and a card that may not promise more --------------------------------------------------

LICENSED = recipe_with(
    'name="licensed"',
    "shard_rows=2000",
    'export.license="apache-2.0"',
    'sources.0.columns.license="terms"',
    "stage1.band.attempts=2",
)
FOUR = dict(list(SUMS.items())[2:6])
TERMS = (None, "CC-BY-NC-4.0", "cc-by-4.0", "CC-BY-NC-4.0")  # in whatever letters


@pytest.fixture
def licensed(tmp_path: Path) -> Path:
    rows = [
        {"question": text, "final": value, "terms": terms}
        for (text, value), terms in zip(FOUR.items(), TERMS, strict=True)
    ]
    write_jsonl(tmp_path / "problems.jsonl", rows)
    write_attempts(tmp_path)
    (tmp_path / "licensed.toml").write_text(LICENSED)
    return tmp_path / "licensed.toml"


def test_rows_that_forbid_the_cards_licence_are_named_and_published_if_the_recipe_asks(
    licensed: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    stopped = goldilocks("run", licensed, "--out", folder)
    assert stopped.status == 1
    assert "source school: 2 rows (1, 3) under CC-BY-NC-4.0, which allows non-commercial use only" in stopped.err
    assert "`export.license` is apache-2.0" in stopped.err
    run(licensed, folder, "export.license=other")
    licenses = published(folder, "data").sort("row")["license"].to_list()
    assert licenses == ["MIT", "CC-BY-NC-4.0", "CC-BY-4.0", "CC-BY-NC-4.0"]
    attribution = (folder / "curated" / "ATTRIBUTION.md").read_text()
    for terms in ("CC-BY-NC-4.0 | 2", "MIT | 1"):
        assert f"| school | problems.jsonl | not pinned | {terms} | 0 | 0 |" in attribution


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("licensed.toml", '"MIT"', '"NOT-A-LICENCE-!!"', "'NOT-A-LICENCE-!!' is no SPDX licence"),
        ("licensed.toml", '"apache-2.0"', '"Apache 2"', "perhaps 'Apache-2.0' is meant"),
        ("problems.jsonl", '"cc-by-4.0"', '"free"', "line 3: 'free' is no SPDX licence"),
    ],
)
def test_what_is_no_licence_is_refused(
    file: str, old: str, new: str, message: str, licensed: Path, tmp_path: Path
) -> None:
    (tmp_path / file).write_text((tmp_path / file).read_text().replace(old, new))
    assert message in goldilocks("run", licensed, "--out", tmp_path / "run").err


WEB = Path(__file__).with_name("copies.toml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_merged_copies_keep_their_sources_and_licences(licensed: Path, tmp_path: Path) -> None:
    text, value = next(iter(FOUR.items()))
    near = text.replace("What is", "Now what is")
    write_jsonl(tmp_path / "copies.jsonl", [{"question": one, "final": value} for one in (text, near, f"  {near}")])
    licensed.write_text(LICENSED.replace("[stage1]", f"{WEB}\n[stage1]", 1))
    folder = tmp_path / "run"
    run(licensed, folder, "export.license=other")
    copies = [{"source": "web", "row": row, "license": "CC-BY-NC-4.0"} for row in (0, 1, 2)]
    assert published(folder, "data").sort("row")["also_from"].to_list() == [copies, [], [], []]
    attribution = (folder / "curated" / "ATTRIBUTION.md").read_text()
    assert "| web | copies.jsonl | not pinned | CC-BY-NC-4.0 | 0 | 0 | 3 |" in attribution
    assert re.search(r"\| web \| CC-BY-NC-4\.0 \| digest `\w+` \| 3 \| 0 \| 3 \|", card(folder))


def test_a_copys_licence_counts_as_a_rows_own(licensed: Path, tmp_path: Path) -> None:
    rows = [{"question": text, "final": value} for text, value in FOUR.items()]
    write_jsonl(tmp_path / "problems.jsonl", [*rows, {**rows[0], "terms": "CC-BY-NC-4.0"}])
    assert "1 row (4) under CC-BY-NC-4.0" in goldilocks("run", licensed, "--out", tmp_path / "run").err


# --- no command writes over what it reads ----------------------------------------------------------------------------

PROGRAM = {"id": "x", "tests": [], "problem": "x", "lang": "python", "code": "", "gold": "1", "text": "a", "q": "What?"}
REFUSED = "which is read by this command; give another --out."


@pytest.mark.parametrize(
    "command",
    [
        ("statements", "IN", "--out", "LINK", "--map", "statement=q"),
        ("overlap", "IN", "--against", "OTHER", "--out", "OTHER", "--field", "q"),
        ("answers", "IN", "--out", "IN"),
        ("code", "--problems", "IN", "--submissions", "OTHER", "--out", "OTHER"),
        ("language", "IN", "--out", "IN"),
    ],
)
def test_an_output_that_is_an_input_is_refused(command: tuple[str, ...], tmp_path: Path) -> None:
    places = {name: tmp_path / f"{name}.jsonl" for name in ("IN", "OTHER", "LINK")}
    for name in ("IN", "OTHER"):
        write_jsonl(places[name], [PROGRAM])
    places["LINK"].symlink_to(places["IN"])
    before = stamps(tmp_path)
    assert REFUSED in refusal("verify", *(places.get(word, word) for word in command))
    assert stamps(tmp_path) == before


def test_a_set_is_neither_exported_into_itself_nor_overwritten_by_a_comparison(tiny_copy: Tiny, tiny_run: Tiny) -> None:
    curated = tiny_copy.folder / "curated"
    for place in (curated, curated / "data", curated / "dropped", curated / "new"):
        why = refusal("export", tiny_copy.folder, "--format", "trl", "--out", place)
        assert f"{place} is, or is in, {curated}, {REFUSED}" in why
    own = next((curated / "data").glob("*.parquet"))
    kept = next((tiny_copy.folder / "versions").rglob("decisions.parquet"))
    before = contents(curated), kept.read_bytes()
    for old, new, out in (
        (tiny_copy.folder, tiny_run.folder, own),
        (tiny_run.folder, tiny_copy.folder, own),
        (f"{tiny_copy.folder}@1", tiny_run.folder, kept),
    ):
        assert REFUSED in refusal("diff", old, new, "--out", out)
    assert (contents(curated), kept.read_bytes()) == before


def test_a_run_does_not_read_its_own_set(tiny_copy: Tiny) -> None:
    own = next((tiny_copy.folder / "curated" / "data").glob("*.parquet"))
    mapped = ["sources.0.columns.statement=statement", "sources.0.columns.answer=answer"]
    join = {"path": str(own), "on": "question", "key": "statement", "into": "other"}
    before = (tiny_copy.folder / "run.json").read_bytes(), own.read_bytes()
    for settings in (
        [f"sources.0.path={own}", "sources.0.kind=parquet", *mapped],
        [f"sources.0.path={own.parent.parent}", "sources.0.kind=dataset", *mapped],
        [f"sources.0.join.{name}={value}" for name, value in join.items()],
        [f'decontamination.against=[{{name="own", path="{own}", columns={{statement="statement"}}}}]'],
    ):
        stopped = tiny_copy.run(*settings)
        assert stopped.status == 1
        assert "is written by this run and cannot be its source too; give another --out." in stopped.err
    assert ((tiny_copy.folder / "run.json").read_bytes(), own.read_bytes()) == before
