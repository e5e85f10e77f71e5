"""The exceptions of the core, one class per situation.

::

    RaftError
    ├── NotLeaderError               what only a leader does, in an epoch that it does not lead
    ├── KRaftVersionUpgradeError     kraft.version cannot be changed to the requested level
    └── IllegalMoveError             an invariant is broken: the replica must stop

The first two answer the driver's own calls, which then have changed nothing. Nothing that a peer
sends raises any of them: a bad request is answered with an `Error`, and a bad response is reported
as a `PeerRefused`.
"""


class RaftError(Exception):
    """The base of all exceptions that this package raises on purpose."""


class NotLeaderError(RaftError):
    """Records or an upgrade were asked of a replica that does not lead in that epoch.

    `leader_id` and `epoch` are what the replica knows: the leader, None where none is known,
    and the epoch that it is in.
    """

    def __init__(self, text: str, *, leader_id: int | None, epoch: int) -> None:
        super().__init__(text)
        self.leader_id = leader_id
        self.epoch = epoch


class KRaftVersionUpgradeError(RaftError):
    """The kraft.version cannot be changed to the requested level; the text is Kafka's."""


class IllegalMoveError(RaftError):
    """The core was about to be in a role or state it must not be in: an invariant is broken."""
