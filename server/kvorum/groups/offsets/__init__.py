"""Committed offsets: commit, fetch, delete, expiry, and those of open transactions."""
