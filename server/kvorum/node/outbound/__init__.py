"""Connections to other nodes: to the active controller, and to the leader of a partition."""
