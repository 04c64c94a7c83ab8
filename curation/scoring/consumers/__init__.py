"""Classes for other trainers that judge by a row's record; each is imported only by its trainer.

A response on which the verifier failed is worth 0, and marked in a metric if the trainer has one.
"""
