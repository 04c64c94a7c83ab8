"""The same problem twice: exact copies, near duplicates, and what both are found with."""
