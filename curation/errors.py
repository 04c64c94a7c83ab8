"""Errors that a user can mend, importable without polars."""

from __future__ import annotations

from curation.public_urls import public_text


class GoldilocksError(Exception):
    """Whatever a user can mend. Its text states what was wrong, where, the value, and what to do; URLs have no secrets.

    GoldilocksError
    ├── ConfigError     a recipe or a setting
    ├── SourceError     an input file, data set, column or value
    ├── StoreError      a run folder that is damaged, or was made by something else
    ├── PolicyError     whoever answers the problems cannot
    │   └── RequestRefused  … one request; others may well be answered
    └── VerifierError   the verifier cannot run at all (its failures on single answers are verdicts)
    """

    def __str__(self) -> str:
        return public_text(super().__str__())


class ConfigError(GoldilocksError):
    """A recipe or a setting that cannot be meant."""


class SourceError(GoldilocksError):
    """An input that is missing, unreadable, or not shaped as the recipe states."""


class StoreError(GoldilocksError):
    """A run folder that cannot be trusted."""


class PolicyError(GoldilocksError):
    """A policy that cannot answer."""


class RequestRefused(PolicyError):
    """One request that cannot be answered, whoever is asked: an outcome of its problem, not the end of a run.

    ``kind`` is what `FailureBudget` counts it as: a status such as ``400``, ``too_long`` or ``content_filter``.
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind, self.reason = kind, public_text(reason)


class VerifierError(GoldilocksError):
    """A verifier that cannot be started or keeps dying."""
