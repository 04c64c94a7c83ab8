"""Old keys of a recipe, and the new ones or why there is none; `curation.config.renaming` says how they are read."""

_SIMILARITY = "decontamination.words | a cosine of rare words, on another scale than MinHash's (0.6 by default)"
_DIAL = "prefixes brought no gain in training (docs/explanation/difficulty.md); remove [dial]"

RECIPE: dict[str, str] = {
    "near_duplicates": "near_dedup",
    "contamination": "decontamination",
    "contamination.methods.* = minhash": "decontamination.methods.* = words",
    "decontamination.methods.* = minhash": "decontamination.methods.* = words",
    "contamination.similarity": _SIMILARITY,
    "decontamination.similarity": _SIMILARITY,
    "code.matrix": "code.execution_matrix",
    "code.generation": "code.test_generation",
    "code.twins": "code.language_variants",
    "stage*.sampling.curtail": "stage*.sampling.early_stopping",
    "dial": f" | {_DIAL}",
    "premises.least": "premises.min_votes",
    "refresh.change": "refresh.change_probability",
    "refresh.probe": "refresh.probe_share",
    "refresh.retry": "refresh.retry_share",
    "refresh.least_attempts": "refresh.min_attempts",
}
