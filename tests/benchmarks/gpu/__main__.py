"""Is training right on this GPU, and how quick is it? One command of at most nine minutes.

    python -m tests.benchmarks.gpu [--json FILE] [--minutes 9] [--toy]

Needs torch (2.11 or newer) and transformers; other modules that the trainer imports have stand-ins (`stand_ins`) where
they are missing. First come the comparisons of `correctness`; the status is 1 if one fails. Then figures for models of
0.5, 1.5 and 7 billion random weights, micro-batches of 8,192 and 16,384 tokens, in bf16 with activation checkpointing:
tokens per second, the share of the GPU's matrix peak (MFU), peak memory and its estimate, how long new weights take to
reach a generator, and what a token costs the process that reads generators' answers (with orjson).

Without a GPU, or with ``--toy``, it runs with toy models, whose figures mean nothing. A figure without time is named.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

LAST_FIGURE_S = 90.0
"""No figure is begun with less time left."""


def main() -> int:
    begun = time.monotonic()
    options = argparse.ArgumentParser(prog="python -m tests.benchmarks.gpu", description="Training on this GPU.")
    options.add_argument("--json", type=Path, metavar="FILE", help="where the figures go as JSON")
    options.add_argument("--minutes", type=float, default=9.0, help="no figure is begun that would pass this")
    options.add_argument("--toy", action="store_true", help="toy models, as on a CPU")
    parsed = options.parse_args()

    from tests.benchmarks.gpu.stand_ins import install

    missing = install()
    import torch
    import transformers

    from tests.benchmarks.gpu.correctness import all_checks
    from tests.benchmarks.gpu.figures import matrix_peak, training_figures
    from tests.benchmarks.gpu.models import SHAPES, TOY

    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    toy = parsed.toy or device.type == "cpu"
    result: dict[str, Any] = {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": sys.version.split()[0],
        "stand_ins": missing,
        "toy": toy,
    }
    print(f"{result['device']}, torch {result['torch']}, transformers {result['transformers']}", flush=True)
    result["checks"] = []
    for check in all_checks(device):
        done = check(device)
        result["checks"].append({**asdict(done), "passed": done.passed})
        verdict = "ok  " if done.passed else "FAIL"
        print(f"{verdict} {done.check}: {done.difference:.3g} (at most {done.limit:.3g}; {done.note})", flush=True)
    result["matrix"] = matrix_peak(device)
    measured = result["matrix"]["measured_tflops"]
    peak = result["matrix"]["sheet_tflops"] or measured
    print(f"matrix peak: {measured:.0f} TFLOP/s measured, {peak:.0f} counts as 1", flush=True)
    wanted = [("toy", TOY, 512)] if toy else [(n, SHAPES[n], t) for n in ("0.5B", "1.5B", "7B") for t in (8192, 16_384)]
    result["figures"] = []
    for name, shape, tokens in wanted:
        left = 60 * parsed.minutes - (time.monotonic() - begun)
        if left < LAST_FIGURE_S and not toy:
            row: dict[str, Any] = {"model": name, "tokens": tokens, "error": "no time was left"}
        else:
            row = training_figures(name, shape, tokens, device, peak)
        result["figures"].append(row)
        print(
            {key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in row.items()},
            flush=True,
        )
    result["seconds"] = time.monotonic() - begun
    if parsed.json is not None:
        parsed.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["passed"] for row in result["checks"]) else 1


if __name__ == "__main__":
    sys.exit(main())
