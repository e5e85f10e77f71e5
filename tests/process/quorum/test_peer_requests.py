"""Requests of peers that cannot be right, have to be believed, or are rubbish: all stays well."""

import random
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from tests.process.quorum.peers import Setting, Spoilt, name_of, now_in, spoil
from tests.process.quorum.unharmed_quorum import assert_no_bugs, assert_unharmed, commit_topic
from tests.support.fake_node import QUORUM_KEYS
from tests.support.node import OTHER_CLUSTER_ID, Node
from tests.support.played_broker import register_broker
from tests.support.quorum.proxied_quorum import ProxiedQuorum
from tests.support.random_messages import random_message
from tests.support.raw_client import CUT_OFF, RawClient, sized_frame

from kvorum.wire.apis import request_class, response_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from kvorum.wire.messages.vote import VoteRequest
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
# Epochs are 32 bits: the highest is left for an election, so the one before is the last to enter.
LAST_EPOCH: Final = 2**31 - 1
RANDOM_REQUESTS: Final = 3000
NOWHERE: Final = BeginQuorumEpochRequest.LeaderEndpoint("CONTROLLER", "127.0.0.1", 1)


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


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxiedQuorum]:
    """Three controllers that every test of this module has to leave well."""
    with ProxiedQuorum(tmp_path_factory.mktemp("disturbed"), 3, is_dynamic=True) as running:
        register_broker(running)
        yield running


@pytest.fixture
def setting(disturbed: ProxiedQuorum) -> Iterator[Setting]:
    """A follower that is asked by the other one; all is well before, and has to be after."""
    yield now_in(disturbed, asks_leader=False)
    assert_unharmed(disturbed)


def tell(setting: Setting, request: Message) -> Any:
    """Send a request to the asked node; return the partition of the response."""
    assert request.API_KEY is not None
    with RawClient(setting.asked.address) as client:
        response: Any = client.ask(request, response_class(request.API_KEY), request.MAX_VERSION)
    return response.topics[0].partitions[0]


def test_a_leader_that_never_was_leaves(setting: Setting) -> None:
    for asked in (setting.asked, setting.leader):
        tell(setting.asked_instead(asked), setting.end())


@pytest.mark.parametrize("leap", [1, 1000])
def test_a_vote_in_a_high_epoch(disturbed: ProxiedQuorum, setting: Setting, leap: int) -> None:
    request = _vote_in(setting, setting.epoch + leap)
    assert tell(setting, request).leader_epoch == setting.epoch + leap
    disturbed.wait_for(
        lambda: _leads_from(disturbed, setting.epoch + leap),
        "somebody leads in that epoch or later",
    )


def test_a_vote_for_another_node_in_a_higher_epoch(setting: Setting) -> None:
    """The epoch is believed before the voter's key is looked at, as in Kafka."""
    request = setting.vote()
    request.topics[0].partitions[0].voter_directory_id = bytes([200]) * 16
    assert tell(setting, request).leader_epoch == setting.epoch + 1


@pytest.mark.parametrize("endpoint", [NOWHERE, None], ids=["nowhere", "unknown"])
@pytest.mark.parametrize("leader_id", [None, 77], ids=["a voter", "a stranger"])
def test_a_leader_that_cannot_be_reached(
    setting: Setting, leader_id: int | None, endpoint: BeginQuorumEpochRequest.LeaderEndpoint | None
) -> None:
    request = _next_term_of(setting, leader_id or setting.asking.node_id)
    request.leader_endpoints = [] if endpoint is None else [endpoint]
    for asked in (setting.asked, setting.leader):
        tell(setting.asked_instead(asked), request)


@pytest.mark.parametrize(
    ("host", "port"),
    [("\x00", 9092), ("x" * 30_000, 9092), ("", 0), ("127.0.0.1", 0), ("..", 65535)],
    ids=["a zero byte", "long", "empty", "port 0", "dots"],
)
def test_a_leader_at_a_place_that_cannot_be(setting: Setting, host: str, port: int) -> None:
    request = _next_term_of(setting, setting.asking.node_id)
    request.leader_endpoints = [BeginQuorumEpochRequest.LeaderEndpoint("CONTROLLER", host, port)]
    tell(setting, request)


def test_a_node_hears_that_it_leads(setting: Setting) -> None:
    tell(setting, _next_term_of(setting, setting.asked.node_id))


def test_rubbish(disturbed: ProxiedQuorum, setting: Setting) -> None:
    del setting
    dice = random.Random(11)
    for member in disturbed.members.values():
        for rubbish in CUT_OFF.values():
            with RawClient(member.address) as client:
                client.send_bytes(rubbish)
                assert client.is_closed()
        for key in QUORUM_KEYS:
            header = struct.pack(">hhih", key, request_class(key).MAX_VERSION, 1, -1)
            for _ in range(30):
                with RawClient(member.address) as client:
                    client.send_frame(header + b"\x00" + dice.randbytes(dice.randrange(200)))


def test_half_a_request_and_slow_ones(disturbed: ProxiedQuorum, setting: Setting) -> None:
    """Bytes that trickle in, or do not come at all, hold no other client up."""
    requests: list[Message] = [setting.vote(), setting.begin(), setting.fetch()]
    frames = [sized_frame(request, request.MAX_VERSION) for request in requests]
    with ExitStack() as opened:
        for member in disturbed.members.values():
            for frame in frames:
                for size in range(0, len(frame), 5):
                    opened.enter_context(RawClient(member.address)).send_bytes(frame[:size])
        commit_topic(disturbed, "meanwhile")


def test_random_requests(disturbed: ProxiedQuorum, setting: Setting) -> None:
    """Thousands of them, with fields drawn at random: every one is answered."""
    dice = random.Random(setting.epoch)
    for member in disturbed.members.values():
        with RawClient(member.address) as client:
            for _ in range(RANDOM_REQUESTS // len(disturbed.members)):
                kind = request_class(dice.choice(QUORUM_KEYS))
                version = dice.randint(kind.MIN_VERSION, kind.MAX_VERSION)
                client.send(random_message(kind, version, dice), version)
                assert client.read_frame() is not None


def test_good_requests_with_random_fields(disturbed: ProxiedQuorum, setting: Setting) -> None:
    """Such as come through the first checks: their numbers are drawn from the edges."""
    dice = random.Random(setting.end_offset)
    for number in range(RANDOM_REQUESTS):
        current = disturbed.members[1 + number % len(disturbed.members)]
        here = setting.asked_instead(current)
        make = dice.choice([here.vote, here.begin, here.end, here.fetch, here.fetch_snapshot])
        request: Any = make()
        _draw_numbers(request.topics[0].partitions[0], dice, epoch=setting.epoch)
        with RawClient(current.address) as client:
            client.send(request, request.MAX_VERSION)
            assert client.read_frame() is not None


def _draw_numbers(partition: Any, dice: random.Random, *, epoch: int) -> None:
    edges = [-(2**31), -1, 0, 1, 2, 3, epoch - 1, epoch, epoch, epoch + 1, 2**31 - 1]
    names = [
        name
        for name in partition.__slots__
        if isinstance(getattr(partition, name, None), int) and name != "pre_vote"
    ]
    for name in dice.sample(names, dice.randint(1, 2)):
        setattr(partition, name, dice.choice(edges))


def test_the_last_epochs(tmp_path: Path) -> None:
    """A peer that uses up all epochs ends every election to come, but stops no process."""
    with ProxiedQuorum(tmp_path, 3, is_dynamic=False) as disturbed:
        register_broker(disturbed)
        setting = now_in(disturbed, asks_leader=False)
        tell(setting, _vote_in(setting, LAST_EPOCH - 10))
        commit_topic(disturbed, "at-the-end-of-time")
        assert_unharmed(disturbed)
        for member in disturbed.members.values():
            asked = setting.asked_instead(member)
            assert tell(asked, _vote_in(asked, LAST_EPOCH)).error_code == INVALID_REQUEST
            assert tell(asked, _vote_in(asked, LAST_EPOCH - 1)).leader_epoch >= LAST_EPOCH - 1
        assert disturbed.described() is None
        for member in disturbed.members.values():
            disturbed.kill(member.node_id)
            disturbed.start(member.node_id)
        for member in disturbed.members.values():
            find = partial(_tell_if_there, setting.asked_instead(member))
            told = disturbed.wait_for(find, f"{member.node_id} comes back")
            assert told.leader_epoch >= LAST_EPOCH - 1
            assert_no_bugs(member)


def _next_term_of(setting: Setting, leader_id: int) -> BeginQuorumEpochRequest:
    """Return word of a leader in the next epoch."""
    request = setting.begin()
    partition = request.topics[0].partitions[0]
    partition.leader_epoch, partition.leader_id = setting.epoch + 1, leader_id
    return request


def _vote_in(setting: Setting, epoch: int) -> VoteRequest:
    request = setting.vote()
    request.topics[0].partitions[0].replica_epoch = epoch
    return request


def _leads_from(disturbed: ProxiedQuorum, epoch: int) -> bool:
    answer = disturbed.described()
    return answer is not None and answer.leader_epoch >= epoch


def _tell_if_there(setting: Setting) -> Any:
    try:
        return tell(setting, _vote_in(setting, LAST_EPOCH - 1))
    except (OSError, AssertionError):
        return None
