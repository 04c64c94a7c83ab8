"""Policies, which answer the problems (`curation.records.Policy`)."""
