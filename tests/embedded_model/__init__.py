"""The script that makes the embedded model of `training.embedded_model`, measures it, and writes its card."""
