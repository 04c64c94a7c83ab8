"""Errors that a user can fix; importable without polars."""

from __future__ import annotations

from curation.public_urls import public_text


class GoldilocksError(Exception):
    """An error that a user can fix: what was wrong, where, the value, and what to do, without secrets in URLs.

    GoldilocksError
    ├── ConfigError
    ├── SourceError
    ├── StoreError
    ├── PolicyError
    │   └── RequestRefused
    └── VerifierError
    """

    def __str__(self) -> str:
        return public_text(super().__str__())


class ConfigError(GoldilocksError):
    """An invalid recipe or setting."""


class SourceError(GoldilocksError):
    """An input that is missing, unreadable or malformed."""


class StoreError(GoldilocksError):
    """A damaged or foreign run folder."""


class PolicyError(GoldilocksError):
    """A policy that cannot answer."""


class RequestRefused(PolicyError):
    """A refused request: an outcome of its problem, which does not end the run.

    ``kind`` for `FailureBudget` is a status such as ``400``, ``too_long`` or ``content_filter``.
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind, self.reason = kind, public_text(reason)


class VerifierError(GoldilocksError):
    """A verifier that cannot start or keeps dying; failures on single answers are verdicts."""
