"""What each contamination method finds of paraphrased benchmark items, and of what it should not find.

    python tests/benchmarks/bench_decontamination.py [DATA] [--unrelated 8000] [--no-embeddings]

DATA holds the shared sets (default: $GOLDILOCKS_DATA, or shared/data beside the checkout). The originals of a file of
pairs are the benchmark, their paraphrases the input: recall is the share of paraphrases with a hit, ``right`` the share
whose best hit is their own original. Unrelated rows are problems of other sets and of the same set outside the pairs;
each method is shown at its default, and at the least threshold with at most 0.5 % false hits.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from curation.filters.decontamination import BenchmarkIndex, OverlapSettings  # noqa: E402

UNRELATED = {
    "gsm8k_rephrased": ("math/gsm8k", "math/svamp", "math/aqua_rat", "math/imo_answerbench"),
    "humaneval_rephrased": ("code/mbpp_sanitized", "code/humaneval"),
}
RUNS = (13, 10, 8)
FALSE = 0.005


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a JSON lines file."""
    return [json.loads(line) for line in path.open(encoding="utf-8")]


def unrelated(folder: Path, pairs: list[dict[str, str]], names: tuple[str, ...], most: int) -> pl.Series:
    """Return problems of the named sets not among the originals, evenly taken, at most ``most`` of each set."""
    originals = {"".join(pair["original"].split()) for pair in pairs}
    problems: list[str] = []
    for name in names:
        texts = [
            text for row in rows(folder / f"{name}.jsonl") for text in [row.get("problem") or row.get("prompt")] if text
        ]
        far = [text for text in texts if not any("".join(text.split()) in original for original in originals)]
        problems += far[:: max(1, -(-len(far) // most))]
    return pl.Series(problems)


def best(index: BenchmarkIndex, texts: pl.Series) -> pl.DataFrame:
    """Return each text's best score (0 without a hit) and the benchmark row it belongs to."""
    hits = index.hits(texts).group_by("row", maintain_order=True).first()
    lines = pl.DataFrame({"row": pl.int_range(len(texts), eager=True)})
    return lines.join(hits, on="row", how="left").with_columns(pl.col("score").fill_null(0.0))


def settings(embeddings: bool) -> Iterator[tuple[str, OverlapSettings, float]]:
    """Yield what is measured: a name, settings that keep low scores too, and the default threshold."""
    for run in RUNS:
        yield f"ngram, {run} tokens", OverlapSettings(("ngram",), ngram=run), 1e-9
    yield "minhash", OverlapSettings(("minhash",), similarity=0.15), OverlapSettings().similarity
    if embeddings:
        yield "embedding", OverlapSettings(("embedding",), cosine=0.3), OverlapSettings().cosine


def measured(folder: Path, name: str, most: int, embeddings: bool) -> pl.DataFrame:
    """Return one row per method and threshold."""
    pairs = rows(folder / "contamination" / f"{name}.jsonl")
    benchmark = pl.DataFrame({"benchmark": name, "row": range(len(pairs)), "statement": [p["original"] for p in pairs]})
    paraphrases = pl.Series([pair["rephrased"] for pair in pairs])
    others = unrelated(folder, pairs, UNRELATED[name], most)
    lines = []
    for method, overlap, default in settings(embeddings):
        start = time.perf_counter()
        index = BenchmarkIndex(benchmark, overlap)
        hits, wrong = best(index, paraphrases), best(index, others)
        rate = (len(others) + 2 * len(pairs)) / (time.perf_counter() - start)
        allowed = int(FALSE * len(others))
        strict = wrong["score"].sort(descending=True)[allowed] + 1e-6
        for kind, threshold in (("default", default), ("0.5 % false", strict)):
            if kind == "default" or not method.startswith("ngram"):
                hit = pl.col("score") >= threshold
                right = hit & (pl.col("benchmark_row") == pl.col("row"))
                lines.append(
                    {
                        "method": method,
                        "at": kind,
                        "threshold": round(threshold, 3),
                        "recall": hits.select(hit.mean().round(4)).item(),
                        "right": hits.select(right.mean().round(4)).item(),
                        "false": wrong.select(hit.mean().round(5)).item(),
                        "texts_per_s": round(rate),
                    }
                )
    print(f"\n{name}: {len(pairs)} pairs, {len(others):,} unrelated rows of {', '.join(UNRELATED[name])}")
    return pl.DataFrame(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("GOLDILOCKS_DATA", ROOT.parent / "shared" / "data"))
    parser.add_argument("data", nargs="?", type=Path, default=default)
    parser.add_argument("--unrelated", type=int, default=8000, help="at most so many rows of each unrelated set")
    parser.add_argument("--no-embeddings", action="store_true")
    arguments = parser.parse_args()
    with pl.Config(tbl_rows=20, tbl_cols=10, fmt_str_lengths=40, tbl_hide_dataframe_shape=True):
        for name in UNRELATED:
            print(measured(arguments.data, name, arguments.unrelated, not arguments.no_embeddings))


if __name__ == "__main__":
    main()
