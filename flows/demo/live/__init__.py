"""The demo's second part: problems of the embedded family, sampled live with the embedded model.

`problems.jsonl` and `planted.jsonl` are made by `make_data`; nothing here is recorded but the problems.
"""
