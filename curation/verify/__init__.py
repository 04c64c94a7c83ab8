"""Verifiers of attempts. Foreign code runs only in `curation.verify.sandbox`."""
