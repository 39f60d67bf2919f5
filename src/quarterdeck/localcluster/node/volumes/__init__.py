"""The volumes of pods: their contents, and their files on disk."""
