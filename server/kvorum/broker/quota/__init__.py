"""Quotas: what clients may send, fetch and ask for, and how fast replicas are copied."""
