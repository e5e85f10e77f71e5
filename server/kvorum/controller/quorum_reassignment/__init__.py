"""Reassigning the quorum (KIP-642): the target voters, their checks and the next step."""
