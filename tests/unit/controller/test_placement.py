"""The placement of replicas: never twice on a broker, unfenced first, spread over racks."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.controller_under_test import started_cluster

from kvorum.controller.striped_replica_placer import Racks, UsableBroker, usable_brokers
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord


def place(
    brokers: list[UsableBroker], partitions: int, replicas: int, seed: int = 1
) -> list[list[int]]:
    return Racks(brokers).place(
        partition_count=partitions, replication_factor=replicas, random=Random(seed)
    )


CLUSTERS = st.lists(
    st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans()), min_size=1, max_size=9
).map(
    lambda rows: [
        UsableBroker(index, rack, is_fenced and index > 0)
        for index, (rack, is_fenced) in enumerate(rows)
    ]
)


@given(CLUSTERS, st.integers(1, 40), st.integers(1, 5), st.integers())
def test_replicas_are_distinct_and_the_first_one_is_unfenced(
    brokers: list[UsableBroker], partitions: int, replicas: int, seed: int
) -> None:
    fenced = {broker.id for broker in brokers if broker.is_fenced}
    replicas = min(replicas, len(brokers))
    placed = place(brokers, partitions, replicas, seed)
    assert len(placed) == partitions
    for row in placed:
        assert len(row) == len(set(row)) == replicas
        assert row[0] not in fenced


@given(st.integers(1, 8), st.integers(1, 6), st.integers(1, 5), st.integers())
def test_leaders_and_replicas_are_even_over_equal_brokers(
    count: int, rounds: int, replicas: int, seed: int
) -> None:
    brokers = [UsableBroker(index, None, is_fenced=False) for index in range(count)]
    replicas = min(replicas, count)
    placed = place(brokers, count * rounds, replicas, seed)
    assert set(Counter(row[0] for row in placed).values()) == {rounds}
    assert set(Counter(broker for row in placed for broker in row).values()) == {rounds * replicas}


@given(st.integers(1, 4), st.integers(2, 4), st.integers())
def test_each_partition_is_in_as_many_racks_as_it_can_be(
    per_rack: int, racks: int, seed: int
) -> None:
    brokers = [
        UsableBroker(rack * 10 + index, f"rack-{rack}", is_fenced=False)
        for rack in range(racks)
        for index in range(per_rack)
    ]
    for row in place(brokers, 30, racks, seed):
        assert len({broker // 10 for broker in row}) == racks


def test_fenced_brokers_of_a_rack_come_last() -> None:
    brokers = [UsableBroker(index, None, is_fenced=index == 2) for index in range(3)]
    for row in place(brokers, 20, 2):
        assert 2 not in row


LIVE = UsableBroker(1, None, is_fenced=False)
NO_BROKER = "All brokers are currently fenced, or have all their log directories cordoned."


@pytest.mark.parametrize(
    ("brokers", "replicas", "message"),
    [
        ([LIVE], 0, "Invalid replication factor 0: the replication factor must be positive."),
        ([], 1, NO_BROKER),
        ([UsableBroker(1, None, is_fenced=True)], 1, NO_BROKER),
        pytest.param(
            [LIVE],
            2,
            "The target replication factor of 2 cannot be reached because only 1 broker(s) are "
            "registered or some brokers have all their log directories cordoned.",
        ),
    ],
)
def test_what_cannot_be_placed(brokers: list[UsableBroker], replicas: int, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        place(brokers, 1, replicas)
    assert caught.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert caught.value.message == message


def test_brokers_that_shut_down_or_are_cordoned_get_nothing_new() -> None:
    controller = started_cluster(brokers=4)
    brokers = controller.image.cluster.brokers
    cordoned = BrokerRegistrationChangeRecord(
        2, brokers[2].epoch, cordoned_log_dirs=list(brokers[2].directories)
    )
    fenced = BrokerRegistrationChangeRecord(4, brokers[4].epoch, fenced=1)
    controller.commit(((cordoned, 3), (fenced, 0)))
    controller.sessions.begin_controlled_shutdown(3, 100)
    assert usable_brokers(controller.image.cluster, controller.sessions) == [
        UsableBroker(1, None, is_fenced=False),
        UsableBroker(4, None, is_fenced=True),
    ]


def test_a_broker_that_has_shut_down_may_get_replicas_for_its_return() -> None:
    controller = started_cluster(brokers=2)
    controller.create_topic("t", partitions=2, replicas=2)
    for _ in range(2):
        controller.heartbeat(1)
        controller.heartbeat(2, want_shut_down=True)
    assert controller.heartbeat(2, want_shut_down=True).should_shut_down
    stopped = controller.image.cluster.brokers[2]
    assert (stopped.is_fenced, stopped.is_in_controlled_shutdown) == (True, True)
    assert usable_brokers(controller.image.cluster, controller.sessions) == [
        UsableBroker(1, None, is_fenced=False),
        UsableBroker(2, None, is_fenced=True),
    ]
