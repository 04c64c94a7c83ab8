"""The live demo: problems of the embedded family, sampled with the embedded model.

``python -m tests.demo_data.live.make_data`` makes `problems.jsonl` and `planted.jsonl`.
"""
