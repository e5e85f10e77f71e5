"""The story of a partition, on logs of a controller that was made to write them."""

import pytest
from tests.support.controller_under_test import cluster_with_topic, fence, partition_of
from tests.support.spark.log_records import written_records
from tests.unit.inspection.partition_story.accounted_cluster import AccountedCluster, Deed

from kvorum.inspection.metadata_log.folding import ENDLESS
from kvorum.inspection.metadata_log.records import HistorySource
from kvorum.inspection.partition_story.change import PartitionChange, Reason, ReasonKind
from kvorum.inspection.partition_story.sentences import story_lines
from kvorum.inspection.partition_story.story import (
    NoSuchPartitionError,
    PartitionStory,
    partition_story,
)
from kvorum.spark.history import LogRecord, MetadataHistory
from kvorum.wire.messages.delete_topics import DeleteTopicsRequest

HISTORIES = 100
_BESIDES_A_LOSS = {ReasonKind.UNCLEAN_ELECTION, ReasonKind.REASSIGNMENT_COMPLETED}
_BESIDES_AN_ISR = {ReasonKind.REASSIGNMENT_COMPLETED, ReasonKind.LEADER_RECOVERED}
# The side effects of a deed.
_BESIDES = {
    ReasonKind.BROKER_FENCED: _BESIDES_A_LOSS,
    ReasonKind.BROKER_UNREGISTERED: _BESIDES_A_LOSS,
    ReasonKind.BROKER_RESTARTED: _BESIDES_A_LOSS,
    ReasonKind.CONTROLLED_SHUTDOWN: _BESIDES_A_LOSS,
    ReasonKind.BROKER_UNFENCED: {ReasonKind.UNCLEAN_ELECTION},
    ReasonKind.ISR_EXPANDED: _BESIDES_AN_ISR,
    ReasonKind.ISR_SHRUNK: _BESIDES_AN_ISR,
}


def story_of(
    records: list[LogRecord], *, topic: str = "orders", end_offset: int = ENDLESS
) -> PartitionStory:
    source = HistorySource(MetadataHistory(), iter(records))
    return partition_story(source, topic, 0, end_offset=end_offset)


def is_explained(change: PartitionChange, deed: Deed) -> bool:
    """Return whether the change has the reason of the deed, and none that it cannot have."""
    if change.reasons == (Reason(ReasonKind.REASSIGNMENT_COMPLETED),):
        # An election may find that all replicas of a reassignment are in sync, and complete it.
        return deed.reason.kind in {
            ReasonKind.PREFERRED_ELECTION,
            ReasonKind.REASSIGNMENT_COMPLETED,
        }
    if change.reasons == (Reason(ReasonKind.UNCLEAN_ELECTION),):
        # A broker that comes back lets the controller elect another one too.
        return deed.reason.kind in {ReasonKind.BROKER_UNFENCED, ReasonKind.UNCLEAN_ELECTION}
    others = {one.kind for one in change.reasons if one != deed.reason}
    return deed.reason in change.reasons and others <= _BESIDES.get(deed.reason.kind, set())


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_the_reasons_are_what_was_done(seed: int) -> None:
    cluster = AccountedCluster(seed)
    story = story_of(written_records(cluster.controller.records))
    created, *changes = story.changes
    assert created.reasons == (Reason(ReasonKind.PARTITION_CREATED),)
    for change in changes:
        (deed,) = (
            deed for deed in cluster.deeds if deed.first_offset <= change.offset < deed.end_offset
        )
        assert is_explained(change, deed), (change, deed)
    present, expected = story.present, partition_of(cluster.controller)
    assert (present.leader, present.isr) == (expected.leader, expected.isr)
    assert present.replicas == expected.replicas


def test_the_histories_have_every_reason() -> None:
    found = {
        reason.kind
        for seed in range(HISTORIES)
        for change in story_of(written_records(AccountedCluster(seed).controller.records)).changes
        for reason in change.reasons
    }
    assert found >= set(ReasonKind) - {
        ReasonKind.OLDER_THAN_LOG,
        ReasonKind.DIRECTORY_FAILED,
        ReasonKind.DIRECTORY_ASSIGNED,
        ReasonKind.ELR_CHANGED,
        ReasonKind.UNKNOWN,
    }


def test_a_story_in_sentences() -> None:
    controller = cluster_with_topic(1, 2)
    fence(controller, 1)
    lines = list(story_lines(story_of(written_records(controller.records))))
    assert lines[1].startswith("  leader 2 since offset ")
    assert lines[1].endswith(": broker 1 was fenced")
    assert lines[3].endswith(": the partition was created")
    assert lines[-1].endswith(
        ": broker 1 was fenced: leader 1 -> 2, leader epoch 0 -> 1, isr 1,2 -> 2"
    ), lines


def test_a_story_as_of_an_earlier_offset() -> None:
    controller = cluster_with_topic(1, 2)
    end = controller.next_offset + 1
    fence(controller, 1)
    story = story_of(written_records(controller.records), end_offset=end)
    assert story.present.leader == 1
    assert story.end.offset == end - 1


def test_a_partition_that_is_not_there() -> None:
    controller = cluster_with_topic(1, 2)
    with pytest.raises(NoSuchPartitionError, match="there is no partition 0 of topic other"):
        story_of(written_records(controller.records), topic="other")
    controller.ask(
        DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="orders")])
    )
    with pytest.raises(NoSuchPartitionError, match="it was deleted at offset"):
        story_of(written_records(controller.records))
