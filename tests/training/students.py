"""The trained model of a small training recipe, and a recipe for verl."""

from __future__ import annotations

from typing import Any

from training.recipe import TrainRecipe


def student(model: str = "embedded", **settings: Any) -> dict[str, Any]:
    """Return `model` and `models` of a training recipe: the embedded model with torch, in its own prompt."""
    table = {"kind": "torch", "model": model, "prompt": "plain", **settings}
    return {"model": "student", "models": {"student": table}}


def verl_recipe(**changes: Any) -> TrainRecipe:
    """Return a recipe whose model is trained by verl."""
    table = {"name": "t", "steps": 7, "engine": "verl", "data": {"kind": "embedded"}, **student(kind="vllm"), **changes}
    return TrainRecipe.model_validate(table)
