"""The sub-commands of ``kvorum quorum``."""
