"""The page of a run, served by `goldilocks page DIR`; `app.make_app` makes it.

Invariants: it writes only ``review.jsonl``; texts of rows and models are always escaped; the browser runs
only our own scripts.
"""
