"""Requests that a quorum has to believe, or that are rubbish: it goes on with what it does."""

import random
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from tests.process.quorum.peers import Setting, now_in
from tests.process.quorum.unharmed_quorum import assert_no_bugs, assert_unharmed, commit_topic
from tests.support.fake_node import QUORUM_KEYS
from tests.support.played_broker import register_broker
from tests.support.quorum.proxied_quorum import ProxiedQuorum
from tests.support.random_messages import random_message
from tests.support.raw_client import CUT_OFF, RawClient, sized_frame

from kvorum.wire.apis import request_class, response_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from kvorum.wire.messages.vote import VoteRequest
from kvorum.wire.primitives import Message

# Epochs are 32 bits: the highest is left for an election, so the one before is the last to enter.
LAST_EPOCH: Final = 2**31 - 1
INVALID_REQUEST: Final = ErrorCode.INVALID_REQUEST
RANDOM_REQUESTS: Final = 3000
NOWHERE: Final = BeginQuorumEpochRequest.LeaderEndpoint("CONTROLLER", "127.0.0.1", 1)


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxiedQuorum]:
    """Three controllers that every test of this module has to leave well."""
    with ProxiedQuorum(tmp_path_factory.mktemp("disturbed"), 3, is_dynamic=True) as running:
        register_broker(running)
        yield running


@pytest.fixture
def setting(quorum: ProxiedQuorum) -> Iterator[Setting]:
    """A follower that is asked by the other one; all is well before, and has to be after."""
    yield now_in(quorum, asks_leader=False)
    assert_unharmed(quorum)


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
def test_a_vote_in_a_high_epoch(quorum: ProxiedQuorum, setting: Setting, leap: int) -> None:
    request = _vote_in(setting, setting.epoch + leap)
    assert tell(setting, request).leader_epoch == setting.epoch + leap
    quorum.wait_for(
        lambda: _leads_from(quorum, setting.epoch + leap), "somebody leads in that epoch or later"
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


def test_rubbish(quorum: ProxiedQuorum, setting: Setting) -> None:
    del setting
    dice = random.Random(11)
    for member in quorum.members.values():
        for rubbish in CUT_OFF.values():
            with RawClient(member.address) as client:
                client.send_bytes(rubbish)
                assert client.is_closed()
        for key in QUORUM_KEYS:
            header = struct.pack(">hhih", key, request_class(key).MAX_VERSION, 1, -1)
            for _ in range(30):
                with RawClient(member.address) as client:
                    client.send_frame(header + b"\x00" + dice.randbytes(dice.randrange(200)))


def test_half_a_request_and_slow_ones(quorum: ProxiedQuorum, setting: Setting) -> None:
    """Bytes that trickle in, or do not come at all, hold no other client up."""
    requests: list[Message] = [setting.vote(), setting.begin(), setting.fetch()]
    frames = [sized_frame(request, request.MAX_VERSION) for request in requests]
    with ExitStack() as opened:
        for member in quorum.members.values():
            for frame in frames:
                for size in range(0, len(frame), 5):
                    opened.enter_context(RawClient(member.address)).send_bytes(frame[:size])
        commit_topic(quorum, "meanwhile")


def test_random_requests(quorum: ProxiedQuorum, setting: Setting) -> None:
    """Thousands of them, with fields drawn at random: every one is answered."""
    dice = random.Random(setting.epoch)
    for member in quorum.members.values():
        with RawClient(member.address) as client:
            for _ in range(RANDOM_REQUESTS // len(quorum.members)):
                kind = request_class(dice.choice(QUORUM_KEYS))
                version = dice.randint(kind.MIN_VERSION, kind.MAX_VERSION)
                client.send(random_message(kind, version, dice), version)
                assert client.read_frame() is not None


def test_good_requests_with_random_fields(quorum: ProxiedQuorum, setting: Setting) -> None:
    """Such as come through the first checks: their numbers are drawn from the edges."""
    dice = random.Random(setting.end_offset)
    for number in range(RANDOM_REQUESTS):
        current = quorum.members[1 + number % len(quorum.members)]
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
    with ProxiedQuorum(tmp_path, 3, is_dynamic=False) as quorum:
        register_broker(quorum)
        setting = now_in(quorum, asks_leader=False)
        tell(setting, _vote_in(setting, LAST_EPOCH - 10))
        commit_topic(quorum, "at-the-end-of-time")
        assert_unharmed(quorum)
        for member in quorum.members.values():
            asked = setting.asked_instead(member)
            assert tell(asked, _vote_in(asked, LAST_EPOCH)).error_code == INVALID_REQUEST
            assert tell(asked, _vote_in(asked, LAST_EPOCH - 1)).leader_epoch >= LAST_EPOCH - 1
        assert quorum.described() is None
        for member in quorum.members.values():
            quorum.kill(member.node_id)
            quorum.start(member.node_id)
        for member in quorum.members.values():
            find = partial(_tell_if_there, setting.asked_instead(member))
            told = quorum.wait_for(find, f"{member.node_id} comes back")
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


def _leads_from(quorum: ProxiedQuorum, epoch: int) -> bool:
    answer = quorum.described()
    return answer is not None and answer.leader_epoch >= epoch


def _tell_if_there(setting: Setting) -> Any:
    try:
        return tell(setting, _vote_in(setting, LAST_EPOCH - 1))
    except (OSError, AssertionError):
        return None
