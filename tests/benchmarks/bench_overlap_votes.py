"""What a model's votes on near pairs find of rephrased benchmark rows, and what they take of sets that are disjoint.

    python tests/benchmarks/bench_overlap_votes.py FOLDER [DATA] [--only NAME] [--gsm8k FILE ROWS…] [--math FILE ROWS…]

What the question `overlaps` would ask about, of the sets of `rephrased_rows`: rephrased rows, the same with
their own original left out of the benchmark, and disjoint sets; ``--gsm8k`` and ``--math`` name a benchmark's file and
more disjoint rows. Each distinct prompt is written to FOLDER/prompts/HASH.txt, as the policy would be sent it;
nothing in it tells which set it is of. Who answers writes FOLDER/answers/HASH.txt, further votes HASH.2.txt and so on.
What is answered is read as recorded attempts and counted as the stage counts votes; what is not is kept, and said.

Printed by set and by how many neighbours are asked about: the rows that overlap by rules alone and with votes, in per
cent, the rows and pairs asked about per 1,000 rows, and how many pairs have no answer. ``--ask-from``: `ASK_FROM`.
Even tasks of HumanEval may be looked at, odd ones are held out.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from curation.filters.decontamination.overlap import METHODS, OVERLAP, OverlapSettings, classify_hits  # noqa: E402
from curation.questions.overlaps import ASK_FROM, OVERLAPS, near_pairs, overlap_request  # noqa: E402
from curation.records import PromptRequest  # noqa: E402
from tests.benchmarks.prompted_answers import answers_to, write_prompt  # noqa: E402
from tests.benchmarks.rephrased_rows import (  # noqa: E402
    LOOKED_AT,
    MBPP,
    OF_PROGRAMS,
    measured,
    scored_pairs,
    statements,
)

NEAREST = (1, 2)


@dataclass(frozen=True, slots=True)
class RowSet:
    """Rows with what was measured of them against a benchmark."""

    name: str
    rows: list[str]
    benchmark: list[str]
    scores: pl.DataFrame
    settings: OverlapSettings
    own: pl.Series | None = None
    """Of rephrased rows: by the row, the place of its own original in the benchmark."""
    count: int | None = None
    """Of how many rows the scores are, where not of all."""


def program_sets(data: Path) -> Iterator[RowSet]:
    """Yield the sets of HumanEval."""
    name, settings = "humaneval_rephrased", replace(OF_PROGRAMS, methods=METHODS)
    scored = scored_pairs(data, name, settings)
    texts, places = scored.sets["rephrased"], {text: place for place, text in enumerate(scored.benchmark)}
    tasks = {pair["id"]: places[pair["original"]] for pair in reversed(scored.pairs)}
    own = pl.Series([tasks[pair["id"]] for pair in scored.some])
    even = pl.Series([LOOKED_AT[name](pair) for pair in scored.some])
    for half, chosen in (("all", even | ~even), ("looked at", even), ("held out", ~even)):
        for kind, frame, wanted in (("own row", scored.scores["rephrased"], own), ("left out", scored.left_out, None)):
            part = frame.filter(chosen[frame["row"]])
            yield RowSet(f"{name}, {kind}, {half}", texts, scored.benchmark, part, settings, wanted, int(chosen.sum()))
    (mbpp,) = (rows for set_name, rows in scored.sets.items() if set_name != "rephrased")
    yield RowSet(MBPP, mbpp, scored.benchmark, scored.scores[MBPP], settings)


def problem_sets(data: Path) -> Iterator[RowSet]:
    """Yield the sets of GSM8K's rephrased rows."""
    name, settings = "gsm8k_rephrased", OverlapSettings(methods=METHODS)
    scored = scored_pairs(data, name, settings)
    for set_name, rows in scored.sets.items():
        if set_name == "rephrased":
            own = pl.Series(range(len(rows)))
            yield RowSet(f"{name}, own row", rows, scored.benchmark, scored.scores[set_name], settings, own)
            yield RowSet(f"{name}, left out", rows, scored.benchmark, scored.left_out, settings)
        else:
            yield RowSet(set_name, rows, scored.benchmark, scored.scores[set_name], settings)


def disjoint_sets(benchmark: Path, files: list[Path]) -> Iterator[RowSet]:
    """Yield files of rows against a benchmark of mathematics."""
    settings, texts = OverlapSettings(methods=METHODS), statements(benchmark)
    sets = {f"{path.stem} against {benchmark.stem}": list(dict.fromkeys(statements(path))) for path in files}
    scores, _ = measured(texts, sets, settings)
    for name, rows in sets.items():
        yield RowSet(name, rows, texts, scores[name], settings)


def requests_of(rows: RowSet, pairs: pl.DataFrame) -> list[PromptRequest]:
    """Return the request of each pair, in order."""
    named = pairs.select("row", "benchmark_row").iter_rows()
    return [overlap_request(rows.rows[row], rows.benchmark[at], "en") for row, at in named]


def same_rows(votes: pl.DataFrame) -> set[int]:
    """Return the rows of pairs that the votes call the same; one readable vote is enough."""
    return set(votes.filter(OVERLAPS.decide(votes, OVERLAPS.threshold, 1)["decision"] == "same")["row"])


def outcome(rows: RowSet, folder: Path, ask_from: float, nearest: int) -> dict[str, object]:
    """Return a line of the table, with the prompts written down."""
    count = rows.count or len(rows.rows)
    overlaps = classify_hits(rows.scores, rows.settings).filter(pl.col("kind") == OVERLAP)
    pairs = near_pairs(rows.scores, rows.settings, ask_from, nearest)
    requests = requests_of(rows, pairs)
    for request in requests:
        write_prompt(folder / "prompts", OVERLAPS.prompt, request)
    answered = answers_to(requests, OVERLAPS.prompt, folder / "answers", folder)
    texts = [(name, text) for name, some in answered.items() for text in some]
    attempts = pl.DataFrame(texts, {"problem": pl.String, "text": pl.String}, orient="row")
    votes = pairs.hstack(OVERLAPS.tally(pl.Series([request.id for request in requests], dtype=pl.String), attempts))
    same = same_rows(votes)
    by_rules = set(overlaps["row"])
    if rows.own is not None:  # found is what is found with its own row
        own = rows.own
        by_rules = set(overlaps.filter(pl.col("benchmark_row") == own[overlaps["row"]])["row"])
        voted = votes.filter(pl.col("benchmark_row") == own[votes["row"]])
        same = same_rows(voted)
    return {
        "rows": rows.name,
        "n": count,
        "nearest": nearest,
        "rules": round(100 * len(by_rules) / count, 2),
        "with votes": round(100 * len(by_rules | same) / count, 2),
        "asked": round(1000 * pairs["row"].n_unique() / count, 1),
        "calls": round(1000 * pairs.height / count, 1),
        "unanswered": votes.filter(pl.col("readable") == 0).height,
        "called same": votes.filter(pl.col("same") > 0)["row"].n_unique(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("GOLDILOCKS_DATA", ROOT.parent / "shared" / "data"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("data", nargs="?", type=Path, default=default)
    parser.add_argument("--only", choices=("humaneval", "gsm8k", "disjoint"))
    parser.add_argument("--gsm8k", nargs="+", type=Path, default=[], metavar="FILE")
    parser.add_argument("--math", nargs="+", type=Path, default=[], metavar="FILE")
    parser.add_argument("--ask-from", type=float, default=ASK_FROM)
    arguments = parser.parse_args()
    sets: list[RowSet] = []
    if arguments.only in (None, "humaneval"):
        sets += program_sets(arguments.data)
    if arguments.only in (None, "gsm8k"):
        sets += problem_sets(arguments.data)
    if arguments.only in (None, "disjoint"):
        for benchmark, *files in filter(None, (arguments.gsm8k, arguments.math)):
            sets += disjoint_sets(benchmark, files)
    table = [outcome(rows, arguments.folder, arguments.ask_from, nearest) for rows in sets for nearest in NEAREST]
    with pl.Config(tbl_rows=60, tbl_cols=12, tbl_width_chars=180, fmt_str_lengths=50, tbl_hide_dataframe_shape=True):
        print(pl.DataFrame(table))
    print(f"{len(list((arguments.folder / 'prompts').iterdir())):,} distinct prompts")


if __name__ == "__main__":
    main()
