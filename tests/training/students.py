"""The trained model of a small training recipe."""

from __future__ import annotations

from typing import Any


def student(model: str = "embedded", **settings: Any) -> dict[str, Any]:
    """Return `model` and `models` of a training recipe: the embedded model with torch, in its own prompt."""
    table = {"kind": "torch", "model": model, "prompt": "plain", **settings}
    return {"model": "student", "models": {"student": table}}
