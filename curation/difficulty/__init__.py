"""How hard a problem is for a policy: sampling, early stopping, pass rates, what a new checkpoint changes."""
