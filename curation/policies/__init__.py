"""Policies: who answers the problems (`curation.records.Policy`); `flows.run.policies` opens them."""
