"""What leaves before any attempt is made, and why: each filter is a folder or file of its own."""
