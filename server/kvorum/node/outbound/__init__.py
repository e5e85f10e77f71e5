"""Connections to other nodes, and the channel to the active controller."""
