"""Near duplicates and overlap with benchmarks in a run: measured once, decided by thresholds, templates counted."""

from __future__ import annotations

import json

import polars as pl
import pytest

from tests.curation.embeddings.embedding_server import embedding_server
from tests.flows.conftest import TINY_RECIPE, Tiny, goldilocks, stamps, tries, write_jsonl

STORY = (
    "Maria walks {} minutes to the market, buys {} apples for {} dollars each and {} pears, and walks home again. "
    "How many minutes does she walk in all?"
)
FENCE = "A farmer puts a fence of {} metres around a square field. How long is one side of the field in metres?"
BENCHMARKED = (
    TINY_RECIPE.partition("[stage2]")[0]
    + """
[[decontamination.against]]
name = "exam"
kind = "jsonl"
path = "exam.jsonl"
columns = { statement = "task" }
"""
)


def prepare(tiny: Tiny) -> None:
    """Three problems: one is near another, one has the benchmark's template; the benchmark's own stands among them."""
    problems = [
        (STORY.format(20, 5, 2, 3), "40"),
        (STORY.format(20, 5, 2, 3).replace("in all", "altogether"), "40"),
        (FENCE.format(48), "12"),
    ]
    folder = tiny.recipe.parent
    write_jsonl(folder / "problems.jsonl", [{"question": text, "final": answer} for text, answer in problems])
    rows = [tries(text, answer, f"{answer} {answer} 1 2") for text, answer in problems]
    write_jsonl(folder / "weak.jsonl", rows)
    exam = (FENCE.format(96), "How tall is the tallest tree of the wood?")
    write_jsonl(folder / "exam.jsonl", [{"task": text} for text in exam])
    tiny.recipe.write_text(BENCHMARKED)


def dropped(tiny: Tiny) -> list[tuple[str, int]]:
    overlaps = pl.col("stage").is_in(["near_dedup", "decontamination"])
    return tiny.table("dropped").filter(overlaps).select("stage", "row").rows()


@pytest.mark.slow
def test_a_template_stays_and_thresholds_are_changed_without_measuring_again(tiny_copy: Tiny) -> None:
    prepare(tiny_copy)
    said = tiny_copy.run()
    assert dropped(tiny_copy) == [("near_dedup", 1)]
    assert "Decontamination: 1 problem has the wording of a benchmark's with other figures" in said.out
    assert "Decontamination: 1 problem has" in goldilocks("status", tiny_copy.folder).out
    assert "| exam | unknown | 0 | 0 | 0 | 1 |" in (tiny_copy.folder / "curated" / "README.md").read_text()
    stages = tiny_copy.folder / "stages"
    measured = [stages / "06-near-dedup-pairs", stages / "07-decontamination-scores"]
    before = [stamps(folder) for folder in measured]
    assert tiny_copy.run("decontamination.cosine=0.9", "decontamination.templates=drop").status == 0
    assert dropped(tiny_copy) == [("near_dedup", 1), ("decontamination", 2)]
    assert [stamps(folder) for folder in measured] == before
    assert tiny_copy.run("near_dedup.threshold=0.99").status == 0
    assert dropped(tiny_copy) == []
    assert stamps(measured[0]) == before[0]
    assert tiny_copy.run("near_dedup.threshold=0.5").status == 0
    assert stamps(measured[0]) != before[0]  # below what was measured


EMBEDDED = """
[decontamination]
methods = ["embedding"]
cosine = 0.7
embedder = "vectors"
[models.vectors]
kind = "endpoint"
model = "words"
revision = "1"
urls = ["{}"]
"""


TREE = "He buys 5 apples for 2 dollars at the market. How tall is the tallest tree of the wood?"
REWORDED = FENCE.format(48).replace("puts a fence", "builds a new fence")


def prepare_embedded(tiny: Tiny) -> None:
    """The same problems; one is a benchmark's in other words, and one shares words and figures with another row."""
    prepare(tiny)
    write_jsonl(tiny.recipe.parent / "exam.jsonl", [{"task": REWORDED}, {"task": TREE}])


@pytest.mark.slow
def test_servers_embed_and_a_benchmark_is_embedded_once(tiny_copy: Tiny) -> None:
    prepare_embedded(tiny_copy)
    with embedding_server() as server:
        tiny_copy.recipe.write_text(BENCHMARKED + EMBEDDED.format(server.url))
        server.plan = ["ok", "401"]  # the benchmark, then no more
        assert tiny_copy.run().status != 0
        assert [len(texts) for texts in server.asked] == [2]
        assert tiny_copy.run().status == 0
        exam = server.asked[0]
        assert exam == [REWORDED, TREE]
        assert not set(exam) & {text for texts in server.asked[1:] for text in texts}
        asked = len(server.asked)
        assert tiny_copy.run("decontamination.cosine=0.75").status == 0
        assert len(server.asked) == asked
    assert dropped(tiny_copy) == [("near_dedup", 1), ("decontamination", 2)]


@pytest.mark.slow
def test_a_text_that_servers_refuse_is_set_aside_and_asked_for_again(tiny_copy: Tiny) -> None:
    prepare_embedded(tiny_copy)
    kept = ("What is 17 + 25?", "42")
    for name, row in (("problems", {"question": kept[0], "final": kept[1]}), ("weak", tries(*kept, "42 42 1 2"))):
        with (tiny_copy.recipe.parent / f"{name}.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
    with embedding_server() as server:
        tiny_copy.recipe.write_text(BENCHMARKED + EMBEDDED.format(server.url))
        server.refuses = "Maria"
        ended = tiny_copy.run("stage1.sampling.max_failed=0.0")
        assert ended.status != 0
        assert "more than stage1.sampling.max_failed = 0 allows (0)" in ended.err
        assert tiny_copy.run().status == 0
        assert dropped(tiny_copy) == [("near_dedup", 1), ("decontamination", 0), ("decontamination", 2)]
        why = tiny_copy.table("dropped").filter(pl.col("stage") == "decontamination")["reason"].to_list()
        assert why == ["sampling_failed", "contaminated"]
        server.refuses = ""
        assert tiny_copy.run().status == 0
    assert dropped(tiny_copy) == [("near_dedup", 1), ("decontamination", 2)]


@pytest.mark.slow
def test_a_benchmark_row_that_servers_refuse_is_told(tiny_copy: Tiny) -> None:
    prepare_embedded(tiny_copy)
    with embedding_server() as server:
        tiny_copy.recipe.write_text(BENCHMARKED + EMBEDDED.format(server.url).replace('["embed', '["words", "embed'))
        server.refuses = "tallest"
        told = tiny_copy.run()
        assert told.status == 0
        assert "1 of 2 rows of benchmarks were refused" in told.err + told.out
        assert [text for texts in server.asked for text in texts].count(REWORDED) == 1
        server.refuses = ""
        assert tiny_copy.run("near_dedup.threshold=0.99").status == 0
        assert TREE in server.texts  # vectors that lacked one were not kept
