"""What is stored on disk: stage folders of shards, the attempt store and its journal, temporary folders."""
