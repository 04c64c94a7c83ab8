"""Classes for other trainers that judge by a row's record, each imported only by its trainer.

A failed verifier is worth 0, and marked in a metric if possible.
"""
