"""Classes for other trainers that judge by a row's record; a failed verifier is worth 0."""
