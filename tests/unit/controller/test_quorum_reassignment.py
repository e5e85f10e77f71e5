"""The target voters (KIP-642), through the requests that write, list and cancel them."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from tests.support.controller_under_test import ControllerUnderTest, started_cluster
from tests.unit.controller.quorums import LOG_END_OFFSET, described, key

from kvorum.controller.quorum_description import QuorumDescription, ReplicaState
from kvorum.controller.quorum_reassignment.quorum_targets import clear_reached_targets
from kvorum.metadata.voters import TARGET_VOTERS, VoterKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from kvorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kvorum.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

METADATA_TOPIC = "__cluster_metadata"
BROKER = 4
SET, DELETE, APPEND = 0, 1, 2
REFUSED = ErrorCode.INVALID_REPLICA_ASSIGNMENT
OK = (0, None)


def quorum(*voter_ids: int, observers: Iterable[VoterKey] = ()) -> QuorumDescription:
    def state(replica: VoterKey) -> ReplicaState:
        return ReplicaState(replica, LOG_END_OFFSET, last_fetch_age_ms=1)

    return described(voter_ids[0], map(state, map(key, voter_ids)), map(state, observers))


@pytest.fixture
def controller() -> ControllerUnderTest:
    """Voters 1, 2 and 3; 4, 5 and 6 are controllers too. Of those, 6 is down."""
    cluster = started_cluster(brokers=1)
    cluster.quorum = quorum(1, 2, 3, observers=(key(4), key(5)))
    for node_id in range(1, 7):
        cluster.register_controller(node_id)
    return cluster


def alter(
    controller: ControllerUnderTest, replicas: list[int] | None, *, partition_index: int = 0
) -> tuple[int, str | None]:
    partition = AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index, replicas)
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic(METADATA_TOPIC, [partition])
    response = controller.answer(
        AlterPartitionReassignmentsResponse, AlterPartitionReassignmentsRequest(topics=[topic])
    )
    assert response.error_code == 0
    (answer,) = response.responses[0].partitions
    return answer.error_code, answer.error_message


Listed = tuple[list[int], list[int], list[int]]


def ongoing(controller: ControllerUnderTest, *indexes: int) -> Listed | None:
    """Return replicas, adding and removing ones; of the named partitions, or of all."""
    topic = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics(
        METADATA_TOPIC, list(indexes)
    )
    response = controller.answer(
        ListPartitionReassignmentsResponse,
        ListPartitionReassignmentsRequest(topics=[topic] if indexes else None),
    )
    if not response.topics:
        return None
    (listed,) = response.topics
    (partition,) = listed.partitions
    assert (listed.name, partition.partition_index) == (METADATA_TOPIC, 0)
    return partition.replicas, partition.adding_replicas, partition.removing_replicas


def set_key(
    controller: ControllerUnderTest, value: str | None, *, broker: str = "", operation: int = SET
) -> tuple[int, str | None]:
    config = IncrementalAlterConfigsRequest.AlterableConfig(TARGET_VOTERS, operation, value)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(BROKER, broker, [config])
    (answer,) = controller.answer(
        IncrementalAlterConfigsResponse,
        IncrementalAlterConfigsRequest(resources=[resource]),
        is_forwarded=True,
    ).responses
    return answer.error_code, answer.error_message


def replace_all(
    controller: ControllerUnderTest, values: dict[str, str], *, broker: str = ""
) -> tuple[int, str | None]:
    # The cluster's own key cannot be removed.
    kept = {} if broker else {"min.insync.replicas": "1"}
    configs = [AlterConfigsRequest.AlterableConfig(*item) for item in (values | kept).items()]
    resource = AlterConfigsRequest.AlterConfigsResource(BROKER, broker, configs)
    (answer,) = controller.answer(
        AlterConfigsResponse, AlterConfigsRequest(resources=[resource]), is_forwarded=True
    ).responses
    return answer.error_code, answer.error_message


def record(value: str | None, *, broker: str = "") -> ConfigRecord:
    return ConfigRecord(BROKER, broker, TARGET_VOTERS, value)


def target_voters(controller: ControllerUnderTest) -> str | None:
    return controller.image.configs.of_cluster().get(TARGET_VOTERS)


def test_a_reassignment_is_a_configuration_of_the_cluster(controller: ControllerUnderTest) -> None:
    assert alter(controller, [6, 4, 5]) == OK
    assert controller.written == [record("4,5,6")]


def test_another_target_replaces_the_one_before(controller: ControllerUnderTest) -> None:
    alter(controller, [4, 5, 6])
    assert alter(controller, [1, 2, 3]) == OK
    assert controller.written == [record("1,2,3")]


@pytest.mark.parametrize("recorded", ["4,5,6", "6,5,4", " 4, 5 ,6"])
def test_the_same_target_is_acknowledged_and_not_written_again(
    controller: ControllerUnderTest, recorded: str
) -> None:
    assert set_key(controller, recorded) == OK
    assert alter(controller, [5, 4, 6]) == OK
    assert controller.written == []
    assert target_voters(controller) == recorded


def test_targets_by_their_ids_replace_targets_with_directories(
    controller: ControllerUnderTest,
) -> None:
    assert set_key(controller, f"{key(4)}") == OK
    assert alter(controller, [4]) == OK
    assert controller.written == [record("4")]


def test_a_cancelled_reassignment_leaves_nothing(controller: ControllerUnderTest) -> None:
    alter(controller, [4, 5, 6])
    assert alter(controller, None) == OK
    assert controller.written == [record(None)]
    assert ongoing(controller) is None
    assert alter(controller, None)[0] == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert controller.written == []


def test_a_target_that_cannot_be_read_can_be_cancelled_and_replaced(
    controller: ControllerUnderTest,
) -> None:
    """A leader that does not know the key lets every value through."""
    for way_out in (None, [4, 5, 6]):
        controller.commit(((record("four"), 0),))
        assert ongoing(controller) is None
        assert alter(controller, way_out) == OK
        assert target_voters(controller) in {None, "4,5,6"}


def test_only_the_target_that_was_reached_is_cleared(controller: ControllerUnderTest) -> None:
    alter(controller, [4, 5, 6])
    assert clear_reached_targets(controller.image, "1,2,3") == []
    assert clear_reached_targets(controller.image, "4,5,6") == [(record(None), 0)]
    alter(controller, None)
    assert clear_reached_targets(controller.image, "4,5,6") == []


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        ([], "The target voters are empty: a quorum needs a voter."),
        ([4, 5, 4], "The target voters list node 4 twice."),
        ([4, -1], "-1 is not the id of a node."),
        ([4, 7], "Node 7 is neither a voter nor a registered controller."),
        ([4, 2**31 - 1], "Node 2147483647 is neither a voter nor a registered controller."),
    ],
)
def test_targets_that_make_no_quorum_are_refused(
    controller: ControllerUnderTest, replicas: list[int], message: str
) -> None:
    assert alter(controller, replicas) == (REFUSED, message)
    assert controller.written == []
    value = ",".join(map(str, replicas))
    expected = "'-1' is no target voter: expected the id of a node, or id:directory."
    refusal = expected if -1 in replicas else message
    assert set_key(controller, value) == (ErrorCode.INVALID_CONFIG, refusal)
    assert replace_all(controller, {TARGET_VOTERS: value}) == (ErrorCode.INVALID_CONFIG, refusal)
    assert target_voters(controller) is None


def test_a_voter_that_has_not_registered_and_a_controller_that_is_down_are_accepted(
    controller: ControllerUnderTest,
) -> None:
    controller.quorum = quorum(1, 2, 9)
    assert alter(controller, [6, 9]) == OK


def test_a_node_with_two_directories_has_to_be_named_with_one(
    controller: ControllerUnderTest,
) -> None:
    controller.quorum = quorum(1, 2, 3, observers=(key(4), key(4, disk=1)))
    message = f"Node 4 has two directories: {key(4)}, {key(4, disk=1)}. Name the one that is meant."
    assert alter(controller, [3, 4]) == (REFUSED, message)
    assert set_key(controller, "3,4") == (ErrorCode.INVALID_CONFIG, message)
    assert set_key(controller, f"3,{key(4, disk=1)}") == OK
    assert target_voters(controller) == f"3,{key(4, disk=1)}"


def test_a_voter_whose_disk_was_replaced_has_two_directories(
    controller: ControllerUnderTest,
) -> None:
    controller.quorum = quorum(1, 2, 3, observers=(key(3, disk=1),))
    assert alter(controller, [1, 2, 3])[0] == REFUSED
    assert alter(controller, [1, 2]) == OK


def test_voters_that_are_not_in_the_log_cannot_be_reassigned(
    controller: ControllerUnderTest,
) -> None:
    controller.quorum = replace(controller.quorum, kraft_version=0)
    message = "The voters cannot be reassigned because kraft.version is 0: upgrade it to 1 first."
    assert alter(controller, [4, 5]) == (ErrorCode.UNSUPPORTED_VERSION, message)
    assert set_key(controller, "4,5") == (ErrorCode.INVALID_CONFIG, message)
    assert alter(controller, None)[0] == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


@pytest.mark.parametrize("partition_index", [1, -1, 2**31 - 1])
@pytest.mark.parametrize("replicas", [[4], None])
def test_the_metadata_log_has_one_partition(
    controller: ControllerUnderTest, partition_index: int, replicas: list[int] | None
) -> None:
    alter(controller, [4, 5, 6])
    assert alter(controller, replicas, partition_index=partition_index) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        f"Unable to find partition __cluster_metadata:{partition_index}.",
    )
    assert target_voters(controller) == "4,5,6"


def test_a_reassignment_is_listed_with_the_voters_that_come_and_go(
    controller: ControllerUnderTest,
) -> None:
    assert ongoing(controller) is None
    alter(controller, [3, 4, 6])
    expected = ([1, 2, 3, 4, 6], [4, 6], [1, 2])
    assert ongoing(controller) == expected
    assert ongoing(controller, 0) == expected
    assert ongoing(controller, 1) is None
    controller.quorum = quorum(1, 3, 4)
    assert ongoing(controller) == ([1, 3, 4, 6], [6], [1])
    controller.quorum = quorum(3, 4, 6)
    assert ongoing(controller) == ([3, 4, 6], [], [])


def test_a_directory_that_is_replaced_is_listed_as_coming_and_going(
    controller: ControllerUnderTest,
) -> None:
    controller.quorum = quorum(1, 2, 3, observers=(key(3, disk=1),))
    assert set_key(controller, f"1,2,{key(3, disk=1)}") == OK
    assert ongoing(controller) == ([1, 2, 3], [3], [3])


def test_the_key_can_be_set_and_cleared_as_a_configuration(controller: ControllerUnderTest) -> None:
    assert set_key(controller, "4,5,6") == OK
    assert controller.written == [record("4,5,6")]
    assert set_key(controller, None, operation=DELETE) == OK
    assert controller.written == [record(None)]
    assert target_voters(controller) is None
    assert replace_all(controller, {TARGET_VOTERS: "5"}) == OK
    assert target_voters(controller) == "5"


def test_nothing_can_be_appended_to_the_key(controller: ControllerUnderTest) -> None:
    assert set_key(controller, "4", operation=APPEND)[0] == ErrorCode.INVALID_CONFIG


def test_a_single_broker_does_not_have_the_key(controller: ControllerUnderTest) -> None:
    message = f"{TARGET_VOTERS} can only be set for the whole cluster."
    assert set_key(controller, "4", broker="1") == (ErrorCode.INVALID_CONFIG, message)
    refused = replace_all(controller, {TARGET_VOTERS: "4"}, broker="1")
    assert refused == (ErrorCode.INVALID_CONFIG, message)
    assert target_voters(controller) is None


def test_a_stray_key_of_a_single_broker_can_be_cleared(controller: ControllerUnderTest) -> None:
    """A leader that does not know the key may have written it."""
    stray = record("4", broker="1")
    controller.commit(((stray, 0),))
    assert set_key(controller, None, broker="1", operation=DELETE) == OK
    assert controller.written == [record(None, broker="1")]
    controller.commit(((stray, 0),))
    assert replace_all(controller, {"log.cleaner.threads": "2"}, broker="1") == OK
    assert record(None, broker="1") in controller.written


def test_replacing_the_configuration_of_the_cluster_cancels_what_it_does_not_name(
    controller: ControllerUnderTest,
) -> None:
    """AlterConfigs replaces the whole configuration; Kafka makes no exception for any key.

    A client that does not know the key cancels a reassignment that way. The voters are left as
    they are at that moment, which is a quorum like any other.
    """
    alter(controller, [4, 5, 6])
    assert replace_all(controller, {"log.cleaner.threads": "2"}) == OK
    assert record(None) in controller.written
    assert target_voters(controller) is None
    alter(controller, [4, 5, 6])
    assert replace_all(controller, {"log.cleaner.threads": "2", TARGET_VOTERS: "4,5,6"}) == OK
    assert target_voters(controller) == "4,5,6"


def test_a_value_of_any_length_is_refused_in_a_message_that_fits(
    controller: ControllerUnderTest,
) -> None:
    for value in ("9" * 20_000, "x" * 20_000, f"4:{'A' * 20_000}"):
        code, message = set_key(controller, value)
        assert code == ErrorCode.INVALID_CONFIG
        assert len(message or "") < 300
