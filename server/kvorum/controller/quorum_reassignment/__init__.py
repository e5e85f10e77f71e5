"""Reassigning the quorum (KIP-642): the wish, its checks, and the next step towards it."""
