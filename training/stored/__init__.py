"""Attempts that are in stores already, as training data: of curation runs, and of training runs.

`sources` reads them, `tokens` turns texts into the model's tokens again, `supply` judges them by the run's verifiers
and chooses which groups a step trains on; `traces` publishes what a cold start was made of. Nothing samples a token.
"""
