"""The generator of the live demo's problems."""
