"""Objectives: what a minibatch is worth and how its loss is computed, one file each behind one seam (`base`).

`registry` names them; `credit` and `advantages` are what those that compare the rollouts of a group share.
"""
