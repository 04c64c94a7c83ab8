"""Policies: who answers the problems. One Protocol, `curation.records.Policy`."""
