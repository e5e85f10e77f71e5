"""The timeouts and sizes of the quorum: Kafka's keys and defaults."""

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftConfig:
    """The ``controller.quorum.*`` settings that the consensus core acts on, and fixed times."""

    election_timeout_ms: Annotated[int, "controller.quorum.election.timeout.ms"] = 1000
    """The least time before an election begins."""

    election_backoff_ms_max: Annotated[int, "controller.quorum.election.backoff.max.ms"] = 1000
    """The time for which the last successor in line waits."""

    fetch_timeout_ms: Annotated[int, "controller.quorum.fetch.timeout.ms"] = 2000
    """The time for which a follower waits for its leader."""

    request_timeout_ms: Annotated[int, "controller.quorum.request.timeout.ms"] = 2000
    """The time that a peer may take to answer."""

    retry_backoff_ms: Annotated[int, "controller.quorum.retry.backoff.ms"] = 20
    """The pause after a request failed or was refused."""

    fetch_bytes_max: Annotated[int, "controller.quorum.fetch.max.bytes"] = 1024 * 1024
    """The size that one fetch asks for."""

    fetch_snapshot_bytes_max: Annotated[int, "controller.quorum.fetch.snapshot.max.bytes"] = (
        1024 * 1024
    )
    """The part of a snapshot that is asked for at once."""

    fetch_wait_ms_max: int = 500
    """The time for which the leader may hold a fetch that finds nothing new."""

    auto_join: Annotated[bool, "controller.quorum.auto.join.enable"] = False
    """Whether a controller that is not a voter asks to become one."""

    caught_up_window_ms: int = 3_600_000
    """A replica whose last fetch is older than this cannot be added to the voters."""

    observer_session_ms: int = 300_000
    """The time for which the leader lists an observer after the observer's last fetch."""

    shutdown_timeout_ms: int = 5000
    """The time for which a leader that shuts down waits for a successor."""

    succession_step_ms: int = 40
    """The time for which a voter lets the one before it try to replace a leader that is gone."""

    precedence_ms: int = 150
    """The time for which a voter that gave a pre-vote waits for the receiver to win."""

    @property
    def check_quorum_ms(self) -> int:
        """The time for which a leader goes on without fetches from a majority."""
        return int(1.5 * self.fetch_timeout_ms)

    @property
    def begin_quorum_ms(self) -> int:
        """The time between two BeginQuorumEpoch of a leader to a voter that does not fetch."""
        return self.fetch_timeout_ms // 2

    @property
    def voter_probe_ms(self) -> int:
        """The time for which a leader waits for a voter's answer at its named endpoint.

        The voter does not fetch until its UpdateRaftVoter is answered. The wait must be shorter
        than that request's timeout and than the voter's fetch timeout.
        """
        return min(self.request_timeout_ms, self.fetch_timeout_ms) // 2

    @property
    def voter_update_ms(self) -> int:
        """The time between two checks of a follower for something to report to the leader."""
        return self.fetch_timeout_ms
