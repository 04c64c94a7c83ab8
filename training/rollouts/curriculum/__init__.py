"""The Goldilocks curriculum: which problems are trained on now, and what changes when learning slows."""
