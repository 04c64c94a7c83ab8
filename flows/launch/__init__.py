"""A recipe on the GPUs of a machine, or the files with which a cluster starts it there."""
