"""Turn samples into new weights, on one rank or many."""
