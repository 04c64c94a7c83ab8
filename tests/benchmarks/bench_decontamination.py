"""What decontamination finds of rephrased benchmark rows, and what it takes of sets that are disjoint.

    python tests/benchmarks/bench_decontamination.py [DATA] [--disjoint BENCH ROWS]… [--no-embeddings] [--only NAME]

DATA holds the shared sets (default: $GOLDILOCKS_DATA, or shared/data beside the checkout). The originals of a file of
pairs are the benchmark. ``rephrased`` rows should overlap (``own``: with their own original); ``left out`` are the same
rows, each without its own original in the benchmark; ``disjoint`` ones are other sets, of which a few rows are the
same problem all the same (MBPP and HumanEval both ask whether a number is prime). Rephrased rows without any text are
counted apart. ``--disjoint`` adds a benchmark and rows of your own: .json (a list) or .jsonl, statements in `problem`.

Settings are the recipe's defaults; figures in per cent of the rows, rows per second of CPU time. Each benchmark's
corpus is all rows that are shown with it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from curation.embeddings.minilm import MiniLm  # noqa: E402
from curation.filters.decontamination.overlap import (  # noqa: E402
    METHODS,
    OVERLAP,
    TEMPLATE,
    BenchmarkIndex,
    OverlapSettings,
    classify_hits,
)

MBPP = "code/mbpp_sanitized"
DISJOINT = {"gsm8k_rephrased": ("math/svamp",), "humaneval_rephrased": (MBPP,)}
LOOKED_AT = {"humaneval_rephrased": lambda pair: int(pair["id"].split("/")[1]) % 2 == 0}
"""Pairs on which a threshold was chosen; the others were only scored."""
OF_PROGRAMS = OverlapSettings(programs=True)
"""What `flows.stages.decontamination.overlap_settings` says in the code pipeline."""


def statements(path: Path) -> list[str]:
    """Return the statements of a file of rows."""
    text = path.read_text(encoding="utf-8")
    rows = json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.split("\n") if line]
    return [text for row in rows for text in [row.get("problem") or row.get("prompt")] if text]


def line(name: str, scores: pl.DataFrame, count: int, settings: OverlapSettings, seconds: float) -> dict[str, object]:
    """Return a row of the table: the share of rows with an overlap by method and in all, and of templates."""
    hits = classify_hits(scores, settings)
    overlaps = hits.filter(pl.col("kind") == OVERLAP)

    def share(frame: pl.DataFrame) -> float:
        return round(100 * frame["row"].n_unique() / max(1, count), 2)

    by_method = {m: share(overlaps.filter(pl.col("method") == m)) for m in settings.methods}
    without = share(overlaps.filter(pl.col("method") != "embedding"))
    templates = share(hits.filter(pl.col("kind") == TEMPLATE).join(overlaps, on="row", how="anti"))
    rate = round(count / seconds) if seconds else None
    return {"rows": name, "n": count, **by_method, "lexical": without, "all": share(overlaps), "template": templates,
            "per_cpu_s": rate}  # fmt: skip


def measured(
    benchmark: list[str], sets: dict[str, list[str]], settings: OverlapSettings
) -> tuple[dict[str, pl.DataFrame], dict[str, float]]:
    """Return the scores of each set, and the CPU seconds that they took."""
    index = BenchmarkIndex(
        pl.DataFrame({"benchmark": "b", "row": range(len(benchmark)), "statement": benchmark}), settings
    )
    for texts in sets.values():
        index.count(pl.Series(texts))
    scores, seconds = {}, {}
    for name, texts in sets.items():
        start = time.process_time()
        scores[name] = index.scores(pl.Series(texts))
        seconds[name] = time.process_time() - start
    return scores, seconds


@dataclass(frozen=True, slots=True)
class Scored:
    """A file of pairs, the sets shown with it, and what was measured of them."""

    pairs: list[dict[str, Any]]
    some: list[dict[str, Any]]  # those with a rephrased text
    benchmark: list[str]
    sets: dict[str, list[str]]  # texts by name
    scores: dict[str, pl.DataFrame]
    seconds: dict[str, float]
    is_own: pl.Series  # of the scores of rephrased rows: whether the benchmark's row is their own original

    @property
    def own(self) -> pl.DataFrame:
        """Return the scores of rephrased rows with their own originals."""
        return self.scores["rephrased"].filter(self.is_own)

    @property
    def left_out(self) -> pl.DataFrame:
        """Return what is left where each row's own original is no row of the benchmark."""
        return self.scores["rephrased"].filter(~self.is_own)


def scored_pairs(data: Path, name: str, settings: OverlapSettings) -> Scored:
    """Return what is measured of a file of pairs."""
    pairs = [json.loads(line) for line in (data / "contamination" / f"{name}.jsonl").open(encoding="utf-8")]
    pairs = [{"id": number, **pair} for number, pair in enumerate(pairs)]
    some = [pair for pair in pairs if pair["rephrased"].strip()]
    sets = {"rephrased": [pair["rephrased"] for pair in some]}
    sets |= {path: statements(data / f"{path}.jsonl") for path in DISJOINT[name]}
    tasks = {pair["original"]: pair["id"] for pair in reversed(pairs)} if settings.programs else {}
    originals = list(tasks) or [pair["original"] for pair in pairs]
    ids = pl.Series(list(tasks.values()) or [pair["id"] for pair in pairs])
    # many hits of a row, so that those on its own original can be told from the others
    scores, seconds = measured(originals, sets, replace(settings, most=100))
    found = scores["rephrased"]
    is_own = pl.Series([pair["id"] for pair in some])[found["row"]] == ids[found["benchmark_row"]]
    return Scored(pairs, some, originals, sets, scores, seconds, is_own)


def rephrased(data: Path, name: str, settings: OverlapSettings) -> pl.DataFrame:
    """Return the table of one file of pairs."""
    scored = scored_pairs(data, name, settings)
    some, sets, scores, seconds = scored.some, scored.sets, scored.scores, scored.seconds
    own, others = scored.own, scored.left_out
    print(f"\n{name}: {len(scored.pairs)} pairs, {len(scored.pairs) - len(some)} of them without any rephrased text")
    table = [
        line("rephrased, any row", scores["rephrased"], len(some), settings, seconds["rephrased"]),
        line("rephrased, own row", own, len(some), settings, 0),
        line("left out", others, len(some), settings, 0),
    ]
    if name in LOOKED_AT:
        even = pl.Series([LOOKED_AT[name](pair) for pair in some])
        for half, chosen in (("looked at", even), ("held out", ~even)):
            count = int(chosen.sum())
            table.append(line(f"own row, {half}", own.filter(chosen[own["row"]]), count, settings, 0))
            table.append(line(f"left out, {half}", others.filter(chosen[others["row"]]), count, settings, 0))
    table += [line(path, scores[path], len(sets[path]), settings, seconds[path]) for path in DISJOINT[name]]
    return pl.DataFrame(table)


def texts_per_second(data: Path, count: int = 200) -> float:
    """Return how many statements the recipe's default embedder takes per CPU second."""
    embedder = MiniLm()
    texts = statements(data / "math" / "gsm8k.jsonl")[:count]
    embedder.embed(texts[:1])  # the weights
    start = time.process_time()
    embedder.embed(texts)
    return len(texts) / (time.process_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("GOLDILOCKS_DATA", ROOT.parent / "shared" / "data"))
    parser.add_argument("data", nargs="?", type=Path, default=default)
    parser.add_argument("--disjoint", nargs=2, type=Path, action="append", default=[], metavar=("BENCH", "ROWS"))
    parser.add_argument("--no-embeddings", action="store_true")
    parser.add_argument("--only", choices=list(DISJOINT), help="one file of pairs")
    arguments = parser.parse_args()
    methods = METHODS[:2] if arguments.no_embeddings else METHODS
    settings = OverlapSettings(methods=methods)
    with pl.Config(tbl_rows=20, tbl_cols=12, tbl_width_chars=160, fmt_str_lengths=40, tbl_hide_dataframe_shape=True):
        for name in [arguments.only] if arguments.only else DISJOINT:
            of_set = OF_PROGRAMS if name.startswith("humaneval") else settings
            print(rephrased(arguments.data, name, replace(of_set, methods=methods)))
        for benchmark, rows in arguments.disjoint:
            texts = statements(rows)
            scores, seconds = measured(statements(benchmark), {"rows": texts}, settings)
            print(f"\n{rows.name} against {benchmark.name}")
            print(pl.DataFrame([line(rows.stem, scores["rows"], len(texts), settings, seconds["rows"])]))
        if not arguments.no_embeddings:
            print(f"\nall-MiniLM-L6-v2 in NumPy: {texts_per_second(arguments.data):.1f} texts of GSM8K per CPU second")


if __name__ == "__main__":
    main()
