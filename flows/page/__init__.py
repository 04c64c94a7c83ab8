"""The page of a run, which `goldilocks page DIR` serves.

Invariants: it writes only ``review.jsonl``; texts of rows and models are always escaped; the browser runs only our own
scripts.
"""
