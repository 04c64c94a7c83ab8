"""The live demo: problems of the embedded family, sampled with the embedded model."""
