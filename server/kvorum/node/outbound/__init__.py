"""Connections to other nodes, and what is asked or passed on over them."""
