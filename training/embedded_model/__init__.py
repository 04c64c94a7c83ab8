"""A tiny Llama that does short sums, for demos, tests and machines without a GPU.

``python -m tests.embedded_model.make`` trains the weights.
"""

from pathlib import Path

WEIGHTS = Path(__file__).parent / "weights"
"""The shipped model, in Hugging Face format."""

EMBEDDED = "embedded"
"""The shipped model's name in recipes."""


def resolve_model(model: str, recipe_folder: Path) -> Path:
    """Return the shipped model's folder, or a path relative to the recipe's."""
    return WEIGHTS if model == EMBEDDED else recipe_folder / Path(model).expanduser()
