"""The errors of a client of a quorum."""


class ClientOptionError(Exception):
    """An option of the client that has no meaning, or that contradicts another one."""


class QuorumError(Exception):
    """Controllers that cannot be reached, or whose log is not the one of the checkpoint."""
