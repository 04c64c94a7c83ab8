"""What is tried of a model before it is trained: seconds that show whether it would be trained wrongly."""
