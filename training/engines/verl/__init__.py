"""Compile a training recipe for verl, and start, follow and resume verl with our plugin."""
