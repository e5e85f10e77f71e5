"""Nodes and clusters that run inside the process of their user."""
