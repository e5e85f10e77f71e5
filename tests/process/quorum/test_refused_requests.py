"""Requests of peers that cannot be right: each is answered with its error, and changes nothing."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pytest
from tests.process.quorum.peers import Setting, Spoilt, name_of, now_in, spoil
from tests.process.quorum.unharmed_quorum import assert_unharmed
from tests.support.node import OTHER_CLUSTER_ID, Node
from tests.support.played_broker import register_broker
from tests.support.quorum.proxied_quorum import ProxiedQuorum
from tests.support.raw_client import RawClient

from kvorum.wire.apis import response_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.primitives import Message

EPOCH_MAX: Final = 2**31 - 1
NOBODY: Final = bytes([200]) * 16
PARTITION: Final = "topics.0.partitions.0."
NONE: Final = ErrorCode.NONE
INVALID_REQUEST: Final = ErrorCode.INVALID_REQUEST
FENCED: Final = ErrorCode.FENCED_LEADER_EPOCH
UNKNOWN_EPOCH: Final = ErrorCode.UNKNOWN_LEADER_EPOCH
OTHER_CLUSTER: Final = ErrorCode.INCONSISTENT_CLUSTER_ID
INVALID_VOTER: Final = ErrorCode.INVALID_VOTER_KEY
NO_TOPICS: Final[tuple[object, ...]] = ()
# Errors that a real peer does not look into any further; others would stop it.
CONTRADICTION: Final = (NONE, UNKNOWN_EPOCH)
# Elections that a busy machine causes must not be taken for what a request has caused.
PATIENT: Final = {
    "controller.quorum.election.timeout.ms": "5000",
    "controller.quorum.fetch.timeout.ms": "10000",
    "controller.quorum.request.timeout.ms": "10000",
}

Expected = tuple[ErrorCode, ErrorCode | None]
Row = tuple[str, Spoilt, Expected]


def before(setting: Setting) -> int:
    return setting.epoch - 1


def after(setting: Setting) -> int:
    return setting.epoch + 1


def now(setting: Setting) -> int:
    return setting.epoch


def asking_id(setting: Setting) -> int:
    return setting.asking.node_id


def asked_id(setting: Setting) -> int:
    return setting.asked.node_id


def for_each(kinds: Sequence[str], *cases: tuple[Spoilt, Expected]) -> list[Row]:
    return [(kind, *case) for kind in kinds for case in cases]


# To leader and followers alike. A value that is a function is asked for what it is.
TO_ALL: Final[list[Row]] = [
    *for_each(
        ["vote", "begin", "end"],
        ({"cluster_id": OTHER_CLUSTER_ID}, (OTHER_CLUSTER, None)),
        ({"topics": NO_TOPICS}, (INVALID_REQUEST, None)),
        ({"topics.0.partitions": NO_TOPICS}, (INVALID_REQUEST, None)),
        ({"topics.0.topic_name": "other"}, (INVALID_REQUEST, None)),
        ({PARTITION + "partition_index": 1}, (INVALID_REQUEST, None)),
        ({PARTITION + "partition_index": -1}, (INVALID_REQUEST, None)),
    ),
    *for_each(
        ["begin", "end"],
        ({PARTITION + "leader_epoch": before}, (NONE, FENCED)),
        ({PARTITION + "leader_epoch": -1}, (NONE, FENCED)),
        ({PARTITION + "leader_epoch": -(2**31)}, (NONE, FENCED)),
        ({PARTITION + "leader_epoch": EPOCH_MAX}, (NONE, INVALID_REQUEST)),
        ({PARTITION + "leader_id": -1}, (NONE, INVALID_REQUEST)),
        ({PARTITION + "leader_id": asking_id}, CONTRADICTION),
        ({PARTITION + "leader_id": 2**31 - 1}, CONTRADICTION),
    ),
    ("begin", {"voter_id": asking_id}, (NONE, INVALID_VOTER)),
    ("begin", {PARTITION + "voter_directory_id": NOBODY}, (NONE, INVALID_VOTER)),
    ("begin", {PARTITION + "voter_directory_id": bytes(16)}, (NONE, NONE)),
    ("begin", {"leader_endpoints": NO_TOPICS}, (NONE, NONE)),
    ("begin", {"leader_endpoints.0.port": 0}, (NONE, NONE)),
    ("begin", {"leader_endpoints.0.host": "\x00"}, (NONE, NONE)),
    ("vote", {PARTITION + "last_offset": -1}, (NONE, INVALID_REQUEST)),
    ("vote", {PARTITION + "last_offset_epoch": -1}, (NONE, INVALID_REQUEST)),
    ("vote", {PARTITION + "last_offset_epoch": after}, (NONE, INVALID_REQUEST)),
    ("vote", {PARTITION + "replica_epoch": now}, (NONE, INVALID_REQUEST)),
    ("vote", {PARTITION + "replica_epoch": -1}, (NONE, INVALID_REQUEST)),
    ("vote", {PARTITION + "replica_epoch": EPOCH_MAX}, (NONE, INVALID_REQUEST)),
    (
        "vote",
        {
            PARTITION + "replica_epoch": before,
            PARTITION + "last_offset_epoch": 0,
            PARTITION + "pre_vote": True,
        },
        (NONE, FENCED),
    ),
    (
        "vote",
        {PARTITION + "replica_epoch": now, PARTITION + "last_offset_epoch": 0, "voter_id": 77},
        (NONE, INVALID_VOTER),
    ),
    (
        "vote",
        {
            PARTITION + "replica_epoch": now,
            PARTITION + "last_offset_epoch": 0,
            PARTITION + "voter_directory_id": NOBODY,
        },
        (NONE, INVALID_VOTER),
    ),
    (
        "vote",
        {PARTITION + "replica_epoch": now, PARTITION + "pre_vote": True, "voter_id": asking_id},
        (NONE, INVALID_VOTER),
    ),
    ("vote", {PARTITION + "replica_epoch": now, PARTITION + "pre_vote": True}, (NONE, NONE)),
    ("fetch", {"cluster_id": OTHER_CLUSTER_ID}, (OTHER_CLUSTER, None)),
    ("fetch", {"topics": NO_TOPICS}, (INVALID_REQUEST, None)),
    ("fetch", {"topics.0.partitions": NO_TOPICS}, (INVALID_REQUEST, None)),
    ("fetch", {"topics.0.topic_id": NOBODY}, (INVALID_REQUEST, None)),
    ("fetch", {PARTITION + "partition": 1}, (INVALID_REQUEST, None)),
    ("fetch", {"max_wait_ms": -1}, (NONE, INVALID_REQUEST)),
    ("fetch", {PARTITION + "fetch_offset": -1}, (NONE, INVALID_REQUEST)),
    ("fetch", {PARTITION + "fetch_offset": -(2**63)}, (NONE, INVALID_REQUEST)),
    ("fetch", {PARTITION + "last_fetched_epoch": -1}, (NONE, INVALID_REQUEST)),
    ("fetch", {PARTITION + "last_fetched_epoch": after}, (NONE, INVALID_REQUEST)),
    (
        "fetch",
        {PARTITION + "current_leader_epoch": before, PARTITION + "last_fetched_epoch": 0},
        (NONE, FENCED),
    ),
    ("fetch", {PARTITION + "current_leader_epoch": after}, (NONE, UNKNOWN_EPOCH)),
    ("fetch", {PARTITION + "current_leader_epoch": EPOCH_MAX}, (NONE, UNKNOWN_EPOCH)),
    ("fetch_snapshot", {"cluster_id": OTHER_CLUSTER_ID}, (OTHER_CLUSTER, None)),
    ("fetch_snapshot", {"topics.0.name": "other"}, (NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)),
    ("fetch_snapshot", {PARTITION + "partition": 9}, (NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)),
    ("fetch_snapshot", {PARTITION + "current_leader_epoch": before}, (NONE, FENCED)),
    ("fetch_snapshot", {PARTITION + "current_leader_epoch": after}, (NONE, UNKNOWN_EPOCH)),
    ("fetch_snapshot", {PARTITION + "current_leader_epoch": EPOCH_MAX}, (NONE, UNKNOWN_EPOCH)),
]
TO_THE_LEADER: Final[list[Row]] = [
    ("fetch", {"replica_state.replica_id": asked_id}, (NONE, ErrorCode.UNKNOWN_SERVER_ERROR)),
    ("fetch", {PARTITION + "replica_directory_id": NOBODY}, (NONE, NONE)),
    ("fetch", {"replica_state.replica_id": 2**31 - 1}, (NONE, NONE)),
    ("fetch", {"max_bytes": -1}, (NONE, NONE)),
    ("fetch", {PARTITION + "fetch_offset": 2**63 - 1}, (NONE, NONE)),
    ("fetch", {PARTITION + "last_fetched_epoch": 0}, (NONE, NONE)),
    ("fetch", {PARTITION + "high_watermark": -(2**63)}, (NONE, NONE)),
    ("fetch_snapshot", {}, (NONE, ErrorCode.SNAPSHOT_NOT_FOUND)),
    ("fetch_snapshot", {PARTITION + "position": -1}, (NONE, ErrorCode.SNAPSHOT_NOT_FOUND)),
    (
        "fetch_snapshot",
        {PARTITION + "snapshot_id.end_offset": 0, PARTITION + "snapshot_id.epoch": 0},
        (NONE, ErrorCode.SNAPSHOT_NOT_FOUND),
    ),
    ("fetch_snapshot", {PARTITION + "snapshot_id.end_offset": -(2**63)}, (NONE, ErrorCode(98))),
]
NOT_LEADING: Final = (NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
TO_A_FOLLOWER: Final[list[Row]] = [
    ("begin", {PARTITION + "leader_id": asked_id}, CONTRADICTION),
    ("end", {PARTITION + "leader_id": asked_id}, CONTRADICTION),
    ("fetch", {}, NOT_LEADING),
    ("fetch_snapshot", {}, NOT_LEADING),
]


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxiedQuorum]:
    """Three controllers that nothing in this module may harm."""
    folder = tmp_path_factory.mktemp("refusing")
    with ProxiedQuorum(folder, 3, is_dynamic=True, settings=PATIENT) as running:
        register_broker(running)
        yield running
        assert_unharmed(running)


def _ask(member: Node, request: Message) -> Expected:
    """Return the error of a response as a whole, and that of its partition."""
    assert request.API_KEY is not None
    with RawClient(member.address) as client:
        response: Any = client.ask(request, response_class(request.API_KEY), request.MAX_VERSION)
    topics = response.responses if hasattr(response, "responses") else response.topics
    if not topics:
        return response.error_code, None
    return response.error_code, topics[0].partitions[0].error_code


def _name(value: Spoilt | str | Expected) -> str | None:
    """Return what a parameter is called in the name of a test."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return None
    return name_of(value, without=PARTITION)


def _check(quorum: ProxiedQuorum, setting: Setting, kind: str, spoilt: Spoilt) -> Expected:
    make: Callable[[], Message] = getattr(setting, kind)
    request = make()
    spoil(request, spoilt, setting)
    answered = _ask(setting.asked, request)
    later = quorum.described()
    assert later is not None
    assert (later.leader_id, later.leader_epoch) == (setting.leader.node_id, setting.epoch)
    return answered


@pytest.mark.parametrize(("kind", "spoilt", "expected"), TO_ALL, ids=_name)
def test_what_everybody_refuses(
    quorum: ProxiedQuorum, kind: str, spoilt: Spoilt, expected: Expected
) -> None:
    for asks_leader in (True, False):
        assert _check(quorum, now_in(quorum, asks_leader=asks_leader), kind, spoilt) == expected


@pytest.mark.parametrize(("kind", "spoilt", "expected"), TO_THE_LEADER, ids=_name)
def test_what_a_leader_answers(
    quorum: ProxiedQuorum, kind: str, spoilt: Spoilt, expected: Expected
) -> None:
    assert _check(quorum, now_in(quorum, asks_leader=True), kind, spoilt) == expected


@pytest.mark.parametrize(("kind", "spoilt", "expected"), TO_A_FOLLOWER, ids=_name)
def test_what_a_follower_answers(
    quorum: ProxiedQuorum, kind: str, spoilt: Spoilt, expected: Expected
) -> None:
    assert _check(quorum, now_in(quorum, asks_leader=False), kind, spoilt) == expected
