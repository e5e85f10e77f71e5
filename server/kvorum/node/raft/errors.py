"""The errors of a replica's methods."""


class RaftNodeError(Exception):
    """The base of the errors that this package raises."""


class ProposalTooLargeError(RaftNodeError):
    """The records of one proposal do not fit into one batch."""


class RaftStoppedError(RaftNodeError):
    """The replica is not running: not started, closed, or stopped by a failure."""
