"""The sub-commands of ``kvorum features``."""
