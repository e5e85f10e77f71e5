"""How patient the quorum is: Kafka's keys and defaults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftConfig:
    """The ``controller.quorum.*`` settings that the consensus core acts on, and fixed times."""

    election_timeout_ms: int = 1000
    """controller.quorum.election.timeout.ms: the least time before an election begins."""

    election_backoff_ms_max: int = 1000
    """controller.quorum.election.backoff.max.ms: how long the last successor in line waits."""

    fetch_timeout_ms: int = 2000
    """controller.quorum.fetch.timeout.ms: how long a follower waits for its leader."""

    request_timeout_ms: int = 2000
    """controller.quorum.request.timeout.ms: how long a peer may take to answer."""

    retry_backoff_ms: int = 20
    """controller.quorum.retry.backoff.ms: pause after a peer failed or refused."""

    fetch_bytes_max: int = 1024 * 1024
    """controller.quorum.fetch.max.bytes: how much one fetch asks for."""

    fetch_snapshot_bytes_max: int = 1024 * 1024
    """controller.quorum.fetch.snapshot.max.bytes: how much of a snapshot is asked for at once."""

    fetch_wait_ms_max: int = 500
    """How long the leader may hold a fetch that finds nothing new."""

    auto_join: bool = False
    """controller.quorum.auto.join.enable: a controller that is no voter asks to become one."""

    caught_up_window_ms: int = 3_600_000
    """How long ago a replica may have fetched to be taken for one that is there to vote."""

    observer_session_ms: int = 300_000
    """How long an observer that fell silent stays listed."""

    shutdown_timeout_ms: int = 5000
    """How long a leader that shuts down waits for a successor."""

    succession_step_ms: int = 40
    """How long each voter lets the one before it try to replace a leader whose process is gone."""

    precedence_ms: int = 150
    """How long a voter that gave a pre-vote lets the other one try, where it would try itself."""

    @property
    def check_quorum_ms(self) -> int:
        """How long a leader goes on without hearing from a majority."""
        return int(1.5 * self.fetch_timeout_ms)

    @property
    def begin_quorum_ms(self) -> int:
        """How often a leader tells silent voters that it leads."""
        return self.fetch_timeout_ms // 2

    @property
    def voter_update_ms(self) -> int:
        """How often a follower looks whether the leader has to be told something about it."""
        return self.fetch_timeout_ms
