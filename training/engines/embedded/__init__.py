"""The asynchronous loop on one machine, and a run put together around it."""
