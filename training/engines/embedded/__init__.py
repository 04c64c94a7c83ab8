"""The asynchronous training loop on one machine."""
