"""The script that makes the embedded model of `training.embedded`, measures it, and writes its card."""
