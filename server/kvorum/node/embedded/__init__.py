"""Nodes and clusters inside the process of whoever uses them."""
