"""Run a training recipe; the embedded engine is the exact reference."""
