"""Old keys of a recipe and the new ones, a line each; `curation.config.renaming` says how they are written."""

RECIPE: dict[str, str] = {}
