"""Policies: who answers the problems. One Protocol, `curation.records.Policy`, and one way to open any of them."""

from curation.policies.factory import open_policy

__all__ = ["open_policy"]
