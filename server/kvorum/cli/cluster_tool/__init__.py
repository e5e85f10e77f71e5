"""The sub-commands of ``kvorum cluster``."""
