"""Samples into new weights: packing, attention, log-probabilities, the optimiser over one rank or many."""
