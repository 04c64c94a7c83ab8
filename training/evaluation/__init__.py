"""What is measured and shown while a policy trains: pass@1 and metrics."""
