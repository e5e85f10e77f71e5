"""The story of a partition in sentences."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from kvorum.inspection.partition_story.change import PartitionChange, ReasonKind
from kvorum.inspection.partition_story.story import PartitionStory
from kvorum.inspection.times import utc_text
from kvorum.metadata.directory_ids import LOST, MIGRATING, UNASSIGNED
from kvorum.metadata.partition import NO_LEADER, RECOVERED
from kvorum.spark.history.tables import PartitionTimelineRow
from kvorum.wire.uuid_text import uuid_to_text

_SENTENCES: Final[Mapping[ReasonKind, str]] = MappingProxyType(
    {
        ReasonKind.PARTITION_CREATED: "the partition was created",
        ReasonKind.OLDER_THAN_LOG: "so it is in the snapshot that the log begins with",
        ReasonKind.BROKER_FENCED: "broker {brokers} was fenced",
        ReasonKind.CONTROLLED_SHUTDOWN: "broker {brokers} was in controlled shutdown",
        ReasonKind.BROKER_UNREGISTERED: "broker {brokers} was unregistered",
        ReasonKind.BROKER_RESTARTED: "broker {brokers} registered anew, as it does at its start",
        ReasonKind.DIRECTORY_FAILED: "the log directory on broker {brokers} failed",
        ReasonKind.BROKER_UNFENCED: "broker {brokers} was unfenced",
        ReasonKind.PREFERRED_ELECTION: "the preferred replica, {brokers}, was elected",
        ReasonKind.UNCLEAN_ELECTION: (
            "an unclean election made a replica the leader that was not in sync: what only the "
            "others had is lost"
        ),
        ReasonKind.REASSIGNMENT_BEGUN: "a reassignment began",
        ReasonKind.REASSIGNMENT_COMPLETED: "a reassignment was completed",
        ReasonKind.REASSIGNMENT_CANCELLED: "a reassignment was cancelled",
        ReasonKind.REASSIGNMENT_CHANGED: "a reassignment was replaced by another one",
        ReasonKind.ISR_SHRUNK: "the leader took {brokers} out of the ISR, as not in sync",
        ReasonKind.ISR_EXPANDED: "the leader took {brokers} into the ISR, as in sync again",
        ReasonKind.LEADER_RECOVERED: "the leader recovered from its unclean election",
        ReasonKind.DIRECTORY_ASSIGNED: "the replica on {brokers} has another log directory",
        ReasonKind.ELR_CHANGED: "the eligible leader replicas changed",
        ReasonKind.UNKNOWN: "the log does not say why",
    }
)


_RESERVED_DIRECTORIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        uuid_to_text(MIGRATING): "migrating",
        uuid_to_text(UNASSIGNED): "unassigned",
        uuid_to_text(LOST): "lost",
    }
)


def story_lines(story: PartitionStory) -> Iterator[str]:
    """Yield the present state with its reasons, and then one line for each change."""
    yield (
        f"{story.topic_name}-{story.partition_id} as of offset {story.end.offset}, "
        f"{utc_text(story.end.timestamp_ms)}"
    )
    present = story.present
    parts = (
        ("leader", _leader(present), story.leader_change()),
        ("isr", _listed(present.isr), story.isr_change()),
        ("replicas", _listed(present.replicas), story.replicas_change()),
    )
    for name, value, change in parts:
        yield f"  {name} {value} since offset {change.offset}: {reasons_text(change)}"
    yield "How it came about:"
    for change in story.changes:
        yield (
            f"  offset {change.offset}, {utc_text(change.timestamp_ms)}: "
            f"{reasons_text(change)}: {_differences(change)}"
        )


def reasons_text(change: PartitionChange) -> str:
    """Return the reasons for a change, one after the other."""
    return "; ".join(
        _SENTENCES[reason.kind].format(brokers=_listed(reason.brokers)) for reason in change.reasons
    )


def _differences(change: PartitionChange) -> str:
    """Return what is different after a change, or all of a first state."""
    before, after = change.before, change.after
    now = dict(_facts(after))
    if before is None:
        return ", ".join(f"{name} {value}" for name, value in now.items() if value != "none")
    then = dict(_facts(before))
    return ", ".join(
        f"{name} {then[name]} -> {value}" for name, value in now.items() if value != then[name]
    )


def _facts(state: PartitionTimelineRow) -> Iterator[tuple[str, str]]:
    yield "leader", _leader(state)
    yield "leader epoch", str(state.leader_epoch)
    yield "isr", _listed(state.isr)
    yield "replicas", _listed(state.replicas)
    yield "adding", _listed(state.adding_replicas)
    yield "removing", _listed(state.removing_replicas)
    yield "elr", _listed(state.eligible_leader_replicas)
    yield "last known elr", _listed(state.last_known_elr)
    yield "recovery", "none" if state.leader_recovery_state == RECOVERED else "under way"
    directories = (_RESERVED_DIRECTORIES.get(each, each) for each in state.directories)
    yield "directories", " ".join(directories) or "none"


def _leader(state: PartitionTimelineRow) -> str:
    return "none" if state.leader == NO_LEADER else str(state.leader)


def _listed(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers)) or "none"
