"""The flows of Prefect, read from top to bottom: curation of math and of code, training, the refresh."""
