"""The curriculum: which problems are trained on, and what changes when learning slows."""
