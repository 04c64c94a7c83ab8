"""The embedded model: a tiny Llama that does short sums, for demos, tests and machines without a GPU.

`problems` is its endless supply of problems, `solutions` are the ways of working it is shown, `tokens` its tokenizer.
Its weights lie in ``weights/``, beside this file; ``python -m tests.embedded_model.make`` in the repository trains it
from nothing, and states how often it is right.

Nothing heavy is imported here: `problems` needs no torch.
"""

from pathlib import Path

WEIGHTS = Path(__file__).parent / "weights"
"""The folder of the shipped model, in Hugging Face format."""

EMBEDDED = "embedded"
"""The name of the shipped model in recipes, in place of a folder."""


def resolve_model(model: str, recipe_folder: Path) -> Path:
    """Return the folder that a recipe names: the shipped model's, or one relative to the recipe's."""
    return WEIGHTS if model == EMBEDDED else recipe_folder / Path(model).expanduser()


__all__ = ["EMBEDDED", "WEIGHTS", "resolve_model"]
