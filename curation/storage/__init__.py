"""Storage on disk: stage folders, attempts, journals, mirrors and temporary folders."""
