"""The difficulty dial: a problem that is too hard gets the beginning of a correct attempt, as long as the band needs.

`spans` are the places of a text that may say its answer, `cutting` says where a correct attempt may be cut so that the
answer is not in it, `bisection` which lengths are tried, `sampling` samples them and gathers what came of it.
"""
