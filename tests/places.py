"""Where tests find what lies outside their own folder: the checkout, and the shared real data where it is at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

SHARED_DATA = Path(os.environ.get("GOLDILOCKS_DATA") or ROOT.parent / "shared" / "data")
"""Data sets written elsewhere; tests that need one skip where it is absent."""

WHOLE = "GOLDILOCKS_WHOLE_TESTS"
IS_WHOLE = bool(os.environ.get(WHOLE))
"""Whether tests take all their cases, as for a gate; CI takes some."""


def in_gate(name: str) -> pytest.MarkDecorator:
    """Return a mark of tests that a gate runs, and CI does not."""
    return pytest.mark.skipif(not IS_WHOLE, reason=f"the gate `{name}` runs it")
