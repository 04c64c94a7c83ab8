"""The demo's second part: problems of the embedded family, sampled live with the embedded model.

Nothing here is recorded but the problems; ``python -m tests.demo_data.live.make_data`` in the repository makes
`problems.jsonl` and `planted.jsonl`.
"""
