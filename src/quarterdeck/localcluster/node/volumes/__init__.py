"""The volumes of pods: what they hold, and their files on disk."""
