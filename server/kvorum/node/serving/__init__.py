"""Incoming requests: sockets, connections, and the way from a frame to its handler and back."""
