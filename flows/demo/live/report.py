"""What the live demo shows: who answered, what stopping early saved, how hard the problems are, which labels are wrong."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import polars as pl
from rich.console import Console

from curation.records import DropReason

HERE = Path(__file__).parent
RECIPE = HERE.parent.parent / "recipes" / "demo_live.toml"
WITH_VLLM = (
    "stage1.policy.kind=vllm",
    "stage1.policy.dtype=float32",
    "stage1.policy.max_model_len=256",
    "stage1.policy.kv_cache_mb=64",
    "stage1.policy.in_flight=128",
)
"""What changes in the recipe where vLLM answers."""


def engine() -> tuple[str, list[str]]:
    """Who answers on this machine, and the settings that say so."""
    if importlib.util.find_spec("vllm") is not None:
        return "vLLM", list(WITH_VLLM)
    return "torch (vLLM is not installed here)", []


def show(run: Path, engine_name: str, console: Console) -> None:
    """Print the report of a finished run."""
    decided = pl.read_parquet(run / "decisions" / "stage1" / "*" / "decisions" / "*.parquet")
    counted, wanted = decided["attempts"].sum(), 16 * decided.height
    console.print(f"Sampled live with the embedded model, by {engine_name}.", highlight=False, soft_wrap=True)
    saved = 100 * (1 - counted / wanted)
    console.print(f"  {counted:,} attempts decided {decided.height} problems; all 16 each would be {wanted:,}", end="")
    console.print(f" ({saved:.0f} % saved, no decision changed)", highlight=False, soft_wrap=True)
    console.print("  pass rate   " + _histogram(decided["pass_rate"].drop_nulls().to_list()), highlight=False)
    console.print("  " + _labels(run, decided), highlight=False, soft_wrap=True)


def _histogram(rates: list[float]) -> str:
    bins = [0] * 5
    for rate in rates:
        bins[min(4, int(rate * 5))] += 1
    edges = ("0–.2", ".2–.4", ".4–.6", ".6–.8", ".8–1")
    return "  ".join(f"{edge}: {count}" for edge, count in zip(edges, bins, strict=True))


def _labels(run: Path, decided: pl.DataFrame) -> str:
    """Planted wrong references against suspected ones."""
    lines = (HERE / "planted.jsonl").read_text(encoding="utf-8").splitlines()
    planted = {json.loads(line)["problem"] for line in lines}
    ids = decided.filter(pl.col("reason") == DropReason.SUSPECTED_WRONG_LABEL.value)["problem"]
    dropped = pl.read_parquet(run / "curated" / "dropped" / "*.parquet")
    suspected = set(dropped.filter(pl.col("id").is_in(ids.implode()))["statement"])
    right = len(suspected & planted)
    return f"wrong references planted: {len(planted)}; suspected: {len(suspected)}, of which planted: {right}"
