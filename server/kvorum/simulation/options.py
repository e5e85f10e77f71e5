"""The options of one world: its nodes, their configuration, and how long it lasts."""

from dataclasses import dataclass, replace
from enum import Enum
from random import Random

from kvorum.raft.config import RaftConfig
from kvorum.simulation.versions import Release
from kvorum.storage.log.log_config import LogConfig

_LIVENESS_MS_MIN = 36_000
"""The time to elect a leader and to catch up with it, and a while of calm."""
_SAFETY_MS_MIN = 10_000
BIG_SHARE = 0.25
"""The share of big values among those that clients write."""
BIG_BYTES_MAX = 12_000
"""Big enough that a power cut can tear a write even at pages of 4 KiB."""
SMALL_BYTES_MAX = 40
CALM_THINK_MS_MAX = 1_000.0
"""The longest wait of clients once faults have stopped: the check of L3 needs writes."""
_VALUE_BYTES_MEAN = (BIG_SHARE * BIG_BYTES_MAX + (1 - BIG_SHARE) * SMALL_BYTES_MAX) / 2 + 30
_CONTROLLERS_MAX = 7
"""The most controllers of a world that gets more spares."""
_SPARES_SHARE = 0.4
"""The share of dynamic quorums that get more spares."""
_ROUND_TRIP_MS = 1.0
"""The time between the requests for two parts of a snapshot, in a healthy network."""


class QuorumKind(Enum):
    """The source of a world's voters."""

    STATIC = "static"
    """The configuration; kraft.version stays 0."""
    UPGRADED = "upgraded"
    """The configuration until kraft.version is upgraded, which the operator tries."""
    DYNAMIC = "dynamic"
    """The log, from the first snapshot on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Everything about a world that is not a fault; drawn from a seed by `draw_options`."""

    kind: QuorumKind
    voter_count: int
    spare_count: int
    """The number of controllers that are not voters at first; a dynamic quorum may add them."""
    observer_count: int
    broker_count: int = 0
    """The number of brokers, which are observers too."""
    releases: tuple[Release, ...]
    """The release whose requests each node is limited to, in order of the ids."""
    raft: RaftConfig
    auto_joins: bool
    log: LogConfig
    snapshot_every: int
    """After how many records a node writes a snapshot."""
    clean_every_ms: int
    session_timeout_ms: int = 9_000
    """broker.session.timeout.ms"""
    client_count: int
    think_ms: int
    """The mean wait of a client before it writes again."""
    starts_within_ms: int = 500
    """The time within which the controllers start one by one; 0 where all start at once."""
    safety_ms: int
    liveness_ms: int

    @property
    def node_count(self) -> int:
        """The number of all nodes."""
        return self.voter_count + self.spare_count + self.observer_count + self.broker_count

    def describe(self) -> str:
        """Return the options as one line of text."""
        releases = " ".join(release.value for release in self.releases)
        brokers = f"{self.broker_count} brokers, " if self.broker_count else ""
        return (
            f"{self.voter_count} voters ({self.kind.value}), {self.spare_count} spares, "
            f"{self.observer_count} observers, {brokers}releases {releases}, "
            f"election {self.raft.election_timeout_ms} ms, fetch {self.raft.fetch_timeout_ms} ms, "
            f"snapshot every {self.snapshot_every} records"
        )


def draw_options(random: Random, *, duration_ms: int) -> Options:
    """Draw the options of a world that lasts `duration_ms`, or longer where a phase needs it."""
    kind = random.choices(list(QuorumKind), weights=(4, 2, 5))[0]
    voter_count = random.choices(range(1, 8), weights=(2, 2, 14, 2, 4, 1, 1))[0]
    spare_count = random.choice((0, 1, 1, 2)) if kind is QuorumKind.DYNAMIC else 0
    observer_count = random.choices(range(6), weights=(10, 5, 2, 1, 1, 1))[0]
    node_count = voter_count + spare_count + observer_count
    liveness_ms = max(duration_ms * 3 // 10, _LIVENESS_MS_MIN)
    drawn = Options(
        kind=kind,
        voter_count=voter_count,
        spare_count=spare_count,
        observer_count=observer_count,
        releases=_draw_releases(random, kind, node_count),
        raft=_draw_raft(random),
        auto_joins=spare_count > 0 and random.random() < 0.4,
        log=_draw_log(random),
        snapshot_every=random.choice((5, 15, 40, 100)),
        clean_every_ms=random.choice((1_000, 5_000, 20_000)),
        client_count=random.randint(1, 3),
        think_ms=random.choice((600, 1_500, 4_000)),
        safety_ms=max(duration_ms - liveness_ms, _SAFETY_MS_MIN),
        liveness_ms=liveness_ms,
    )
    return _with_more_spares(random, _with_snapshots_that_arrive(drawn))


def _with_more_spares(random: Random, drawn: Options) -> Options:
    """Return options with as many spares as a whole new set of voters needs, now and then."""
    room = _CONTROLLERS_MAX - drawn.voter_count - drawn.spare_count
    if drawn.kind is not QuorumKind.DYNAMIC or room <= 0 or random.random() >= _SPARES_SHARE:
        return drawn
    more = random.randint(1, min(room, max(drawn.voter_count, 2)))
    at = drawn.voter_count + drawn.spare_count
    # The new ones are of releases that are there already.
    new = tuple(random.choice(drawn.releases) for _ in range(more))
    releases = (*drawn.releases[:at], *new, *drawn.releases[at:])
    return replace(drawn, spare_count=drawn.spare_count + more, releases=releases)


def _with_snapshots_that_arrive(drawn: Options) -> Options:
    """Return options with which a snapshot can be fetched before its leader drops it.

    A leader may drop a snapshot as soon as it has the next one. Where writes are many and big, and
    snapshots frequent, a download in the smallest parts would take longer than that: a replica that
    has to begin with a snapshot would never finish, as a real Kafka node with such settings.
    """
    lives_ms = drawn.snapshot_every * min(drawn.think_ms, CALM_THINK_MS_MAX) / drawn.client_count
    writes = drawn.client_count * (drawn.safety_ms + drawn.liveness_ms) / drawn.think_ms
    # The download is twice as fast as needed on average, because sizes and times vary.
    parts_max = lives_ms / 2 / _ROUND_TRIP_MS
    part_bytes_min = int(writes * _VALUE_BYTES_MEAN / parts_max)
    part_bytes = max(drawn.raft.fetch_snapshot_bytes_max, part_bytes_min)
    return replace(drawn, raft=replace(drawn.raft, fetch_snapshot_bytes_max=part_bytes))


def _draw_releases(random: Random, kind: QuorumKind, count: int) -> tuple[Release, ...]:
    """Draw the release of each node; a log with directory ids needs releases that know them."""
    if random.random() < 0.5:
        return (Release.LATEST,) * count
    choices = [Release.LATEST, Release.BEFORE_PRE_VOTE]
    if kind is QuorumKind.STATIC:
        choices.append(Release.BEFORE_DIRECTORIES)
    return tuple(random.choice(choices) for _ in range(count))


def _draw_raft(random: Random) -> RaftConfig:
    fetch_timeout_ms = random.choice((1_000, 2_000, 2_000, 4_000))
    return RaftConfig(
        election_timeout_ms=random.choice((300, 1_000, 1_000, 2_000)),
        election_backoff_ms_max=random.choice((200, 1_000)),
        fetch_timeout_ms=fetch_timeout_ms,
        request_timeout_ms=random.choice((1_000, 2_000, 2_000)),
        retry_backoff_ms=random.choice((20, 50, 100)),
        fetch_bytes_max=random.choice((200, 4_096, 1024 * 1024)),
        fetch_snapshot_bytes_max=random.choice((500, 4_096, 1024 * 1024)),
    )


def _draw_log(random: Random) -> LogConfig:
    return LogConfig(
        segment_bytes=random.choice((1_024, 4_096, 16_384)),
        segment_ms=random.choice((10_000, 7 * 24 * 3_600_000)),
        retention_bytes=random.choice((2_000, 10_000, 100_000)),
        retention_ms=random.choice((5_000, 60_000, 7 * 24 * 3_600_000)),
        delete_delay_ms=random.choice((1_000, 60_000)),
        index_interval_bytes=random.choice((100, 4_096)),
        index_size_bytes_max=random.choice((64, 10 * 1024 * 1024)),
    )
