"""The data card on small real sets: header, arithmetic, plots, loading, the same bytes again."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from curation.config import Band
from curation.publish.cards.card import attribution, render, write_card
from curation.publish.cards.facts import CardFacts, FunnelRow, StageFacts, compare_stages, count_rates
from curation.publish.export import CURATED
from curation.records import PASS_RATE
from tests.curation.tables import frame

STATEMENTS = (
    ("What is 12 + 30?", "42", "en"),
    ("Quelle est la somme de 3 et de 4 ?", "7", "fr"),
    ("Simplify $\\sqrt{8}$ *fully*.\n# now | `x_1`", "2\\sqrt{2}", "en"),
    ("51 与 15 的和是多少？", "66", "zh"),
)


def problems(count: int) -> pl.DataFrame:
    texts = (zip(("statement", "answer", "lang"), STATEMENTS[at % len(STATEMENTS)], strict=True) for at in range(count))
    rows = ({"id": f"{at:020x}", "group": f"{at:020x}", "row": at, **dict(text)} for at, text in enumerate(texts))
    return frame(CURATED, *rows, source="sheet", domain="math", license="MIT", weight=1.0)


def measured(corrects: list[int], attempts: int, policy: str) -> pl.DataFrame:
    rows = (
        {"problem": f"{at:020x}", "correct": correct, "wrong": attempts - correct, "pass_rate": correct / attempts}
        for at, correct in enumerate(corrects)
    )
    every = {"policy": policy, "top_wrong_answer": None, "attempts": attempts, "judged": attempts}
    return frame(PASS_RATE, *rows, **{**dict.fromkeys(PASS_RATE, 0), **every})


def with_rates(curated: pl.DataFrame, rates: pl.DataFrame) -> pl.DataFrame:
    told = curated.select("id").join(rates, left_on="id", right_on="problem", how="left", maintain_order="left")
    return curated.with_columns(told.select("judged", "correct", "pass_rate"))


def counted(rates: pl.DataFrame, kept: int = 0) -> pl.DataFrame:
    return count_rates([(rates.with_columns(foreseen_inside=pl.lit(None, pl.Boolean)), problems(kept)["id"])])


def facts(stages: int, kept: int = 4) -> CardFacts:
    funnel = [
        FunnelRow("statements", "Format Filter", 12, 9, {"proof": 2, "missing_answer": 1}),
        FunnelRow("exact_dedup", "Duplicates", 9, 8, {"duplicate": 1}),
        FunnelRow("stage1", "Difficulty, Stage 1", 8, 3, {"never_solved": 4, "too_easy": 1}),
        FunnelRow("stage2", "Difficulty, Stage 2", 8, kept, {"never_solved": 1, "too_easy": 7 - kept}),
    ][: 2 + stages]
    counts = ([0, 5, 0, 12, 16, 0, 3, 0], [3, 9, 2, 14, 16, 0, 15, 16])[:stages]
    rates = [measured(corrects, 16, "") for corrects in counts]
    curated = with_rates(problems(kept), rates[-1]) if rates else problems(kept)
    named = [
        ("Difficulty, Stage 1", "weak@1", Band()),
        ("Difficulty, Stage 2", "strong@7f3", Band(max_pass_rate=0.875)),
    ]
    return CardFacts(
        name="small-set",
        pretty_name="A Small Set",
        description="Made for the tests | with a pipe.",
        license="mit",
        version="0.1.0",
        funnel=tuple(funnel),
        sources=1,
        origins="Of sheet: all.",
        curated=curated.lazy(),
        stages=tuple(
            StageFacts(*stage, counted(table, kept)) for stage, table in zip(named[:stages], rates, strict=True)
        ),
        verifier="math-verify@0.9",
        recipe_toml='name = "small-set"  # with ``` in it\n',
        notes=("One more limit.",),
    )


def header(text: str) -> dict[str, Any]:
    _, block, _ = text.split("---\n", 2)
    found = yaml.safe_load(block)
    assert isinstance(found, dict)
    return found


def test_header_is_yaml_that_the_hub_knows() -> None:
    found = header(render(facts(2)))
    assert found["license"] == "mit"
    assert found["language"] == ["en", "fr", "zh"]
    assert found["size_categories"] == ["n<1K"]
    (config,) = found["configs"]
    assert config.pop("description").startswith("rows ")
    assert config == {"config_name": "default", "data_files": [{"split": "train", "path": "data/train-*.parquet"}]}


def decided(**fates: str) -> pl.DataFrame:
    """A stage's decisions: problem → reason, "" where it was kept."""
    rows = [{"problem": name, "keep": not reason, "reason": reason or None} for name, reason in fates.items()]
    return pl.DataFrame(rows, schema={"problem": pl.String, "keep": pl.Boolean, "reason": pl.String})


def test_stages_are_compared_problem_by_problem_and_in_parts_as_in_whole() -> None:
    never, wrong, easy = "never_solved", "suspected_wrong_label", "too_easy"
    first = decided(a=never, b=never, c=never, d="", e="", f=easy, g=never, h=wrong)
    last = decided(a="", b=wrong, c=never, d="", e=easy, f=easy, g="", h="")
    published = pl.Series(["a", "d", "h"])
    parts = [(first[at : at + 3], last[at : at + 3]) for at in (6, 0, 3)]
    summed = compare_stages((*part, published) for part in parts)
    assert summed == compare_stages([(first, last, published)])
    assert summed == {
        **{"never_solved": 4, "rescued": 1, "alone": 2, "both": 1, "lost": {never: 1, wrong: 1}},
        "dropped": {never: 1, wrong: 1, "over_quota": 1},  # g is over the size asked for
    }
    rates, published = measured([0, 3, 3, 3, 16, 3], 16, "m@1"), problems(3)["id"]
    rates = rates.with_columns(foreseen_inside=pl.lit(None, pl.Boolean))
    whole = count_rates([(rates, published)])
    assert whole.rows() == [
        (False, 16, 3, None, None, 2),  # of problems outside the set only the counts are told
        (False, 16, 16, None, None, 1),
        (True, 16, 0, 0.0, None, 1),
        (True, 16, 3, 0.1875, None, 2),
    ]
    assert count_rates((rates[at : at + 2], published) for at in (4, 0, 2)).equals(whole)


@pytest.mark.slow
def test_the_same_facts_give_the_same_bytes_whatever_the_users_plot_settings(tmp_path: Path) -> None:
    import matplotlib
    from huggingface_hub import DatasetCard

    card = write_card(facts(2), tmp_path / "one")
    assert DatasetCard.load(card).data.task_categories == ["text-generation"]
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "savefig.bbox": "tight"}):
        write_card(facts(2), tmp_path / "two")
        assert matplotlib.rcParams["font.size"] == 30
    one, two = (
        {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "one", tmp_path / "two")
    )
    assert one == two
    plots = re.findall(r"!\[[^]]*\]\(([^)]*)\)", card.read_text("utf-8"))
    assert sorted(one) == ["README.md", *plots]
    assert plots == ["plots/funnel.png", "plots/pass_rates.png"]
    for name in plots:
        assert one[name].startswith(b"\x89PNG")
        assert not any(chunk in one[name] for chunk in (b"Software", b"tIME"))


def test_an_empty_set_has_a_card_that_says_so() -> None:
    text = render(facts(2, 0))
    assert "**No problem passed.**" in text
    assert "## Examples" not in text
    assert "datasets.load_dataset" not in text  # the library refuses an empty split
    assert "language" not in header(text)


def test_examples_show_the_statement_letter_by_letter() -> None:
    text = render(facts(2))
    assert "> Simplify \\$\\\\sqrt{8}\\$ \\*fully\\*.  \n> \\# now \\| \\`x\\_1\\`" in text
    assert "Answer: `2\\sqrt{2}`." in text


def test_every_source_is_named_with_the_licences_of_its_rows() -> None:
    def copy(source: str, row: int, licence: str) -> list[dict[str, Any]]:
        return [{"source": source, "row": row, "license": licence}]

    curated = frame(
        CURATED,
        {"source": "a", "license": "MIT", "also_from": copy("c", 3, "CC-BY-SA-4.0")},
        {"source": "a", "license": "MIT", "also_from": copy("a", 9, "MIT"), "raw_answer": "B"},
        {"source": "a", "license": "CC-BY-NC-4.0", "raw_statement": "Old"},
        {"source": "b", "license": "CC-BY-4.0"},
    )
    origins = [("a", "https://a.test/x|y", "0123abc"), *((name, f"{name}.jsonl", None) for name in "bcd")]
    lines = attribution("Sums", "apache-2.0", curated.lazy(), origins).splitlines()
    assert [line for line in lines if line.startswith("| ")][1:] == [
        "| a | https://a.test/x\\|y | 0123abc | MIT | 2 | 1 | 1 |",
        "| a | https://a.test/x\\|y | 0123abc | CC-BY-NC-4.0 (allows non-commercial use only) | 1 | 1 | 0 |",
        "| b | b.jsonl | not pinned | CC-BY-4.0 | 1 | 0 | 0 |",
        "| c | c.jsonl | not pinned | CC-BY-SA-4.0 (must be shared alike) | 0 | 0 | 1 |",
        "| d | d.jsonl | not pinned | – | 0 | 0 | 0 |",
    ]
