"""What a problem is, and whether it is worth training on. Imports neither prefect nor torch, and stays quick."""
