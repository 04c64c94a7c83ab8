"""Run a recipe on a machine's GPUs, or write a cluster's files for it."""
