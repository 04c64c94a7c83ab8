"""Verifiers: what an attempt is worth. Foreign code runs only in `curation.verify.sandbox`."""
