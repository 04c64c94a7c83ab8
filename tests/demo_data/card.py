"""Put the card of the demo set where readers of the repository find it: `data_cards/demo-math`.

Run `python -m flows.demo` first; this copies the rendered card and its plots, and changes nothing in them.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.places import ROOT

TARGET = ROOT / "data_cards" / "demo-math"


def copy_card(curated: Path, target: Path = TARGET) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    shutil.copy(curated / "README.md", target / "README.md")
    shutil.copy(curated / "RECEIPT.md", target / "RECEIPT.md")
    shutil.copytree(curated / "plots", target / "plots")


if __name__ == "__main__":
    copy_card(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/demo-math") / "curated")
