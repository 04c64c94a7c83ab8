"""Old keys of a training recipe and the new ones, a line each; `curation.config.renaming` says how they are written."""

TRAIN_RECIPE: dict[str, str] = {}
