"""Old keys of a recipe and the new ones, a line each; `curation.config.renaming` says how they are written."""

RECIPE: dict[str, str] = {
    "near_duplicates": "near_dedup",
    "contamination": "decontamination",
    "code.matrix": "code.execution_matrix",
    "code.generation": "code.test_generation",
    "code.twins": "code.language_variants",
    "stage*.sampling.curtail": "stage*.sampling.early_stopping",
    "premises.least": "premises.min_votes",
    "refresh.change": "refresh.change_probability",
    "refresh.probe": "refresh.probe_share",
    "refresh.retry": "refresh.retry_share",
    "refresh.least_attempts": "refresh.min_attempts",
}
