"""The stages of the curation pipelines."""
