"""The stages of the curation pipelines, a file each."""
