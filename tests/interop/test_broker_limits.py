"""Every field of the data plane's and groups' requests at its limits, beside a real broker.

Each request differs in a single field from one that is fine. Both brokers get the same ones in the
same order, so their logs and groups go the same way. The newest version of each request; all
versions with KVORUM_BAD_INPUT=all.
"""

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from random import Random
from typing import Any, Final

import pytest
from tests.interop.asked_broker import INTERNAL_TOPICS, SILENCE_S, SILENT, AskedBroker
from tests.interop.broker_requests import bodies
from tests.interop.differential.comparing import is_failure, is_met_otherwise
from tests.interop.differential.limits import Path, changed_bodies, description
from tests.interop.differential.script import message_of
from tests.interop.differential.sides import NO_ANSWER
from tests.interop.shared_records import LONG_TIMES
from tests.support.node import BothNodes
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.node.handlers.registry import broker_apis
from kvorum.wire.apis import API_SPECS, request_class
from kvorum.wire.errors import DecodeError, EncodeError
from kvorum.wire.headers import decode_request_header, encode_request_frame
from kvorum.wire.json_form import Json
from kvorum.wire.primitives import Message

IS_WHOLE: Final = os.environ.get("KVORUM_BAD_INPUT") == "all"
STEPS: Final = int(os.environ.get("KVORUM_DAMAGED_REQUESTS", "4000"))
SEED: Final = int(os.environ.get("KVORUM_DAMAGED_REQUESTS_SEED", "1"))
TOPIC: Final = "limits"
KEYS: Final = {spec.name: key for key, spec in API_SPECS.items()}
NAMES: Final = tuple(bodies(TOPIC, topic_id="", shared_topic_id=""))
SETTINGS: Final = {
    **INTERNAL_TOPICS,
    **LONG_TIMES,
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "transaction.partition.verification.enable": "false",
    # The records are from 1970: a broker removes them at a time of its own.
    "log.retention.ms": "-1",
}
# Values that each broker draws, stamps, or has of its own.
OWN: Final = frozenset(
    {"producerId", "logAppendTimeMs", "sessionId", "errorMessage", "logDir", "totalBytes"}
    | {"usableBytes", "partitionSize", "partitionErrorMessage", "port", "lastTimestamp"}
    | {"throttleTimeMs", "transactionStartTimeMs"}
)

OF_TRANSACTIONS: Final = frozenset({"DescribeTransactions", "ListTransactions"})
"""Requests whose answers change while a coordinator still ends a transaction."""


class Broker(AskedBroker):
    """One of the two, and the requests to it."""

    def __init__(self, address: str) -> None:
        super().__init__(address, TOPIC)

    def frame(self, name: str, version: int) -> bytes:
        """Return a good request as it is sent."""
        request = message_of(request_class(KEYS[name]), self._body(name), version)
        return encode_request_frame(request, version=version, correlation_id=1, client_id="raw")

    def requests(self, name: str, version: int) -> Iterator[tuple[str, Message]]:
        """Yield requests with one field at a limit, and what it is."""
        kind = request_class(KEYS[name])
        body = self._body(name)
        yield "as it is", message_of(kind, body, version)
        for path, changed in changed_bodies(kind, body, version, has_others=True):
            if not _is_left_out(name, path, version):
                what = description(path, changed).replace(self.topic_id, "<id>")
                yield what, message_of(kind, changed, version)

    def _body(self, name: str) -> Mapping[str, Any]:
        made = bodies(TOPIC, topic_id=self.topic_id, shared_topic_id=self.shared_topic_id)
        return made[name]


def _is_left_out(name: str, path: Path, version: int) -> bool:
    """Return whether two brokers have to differ."""
    match name, path, version:
        case "DescribeLogDirs", ("topics",), _:
            # One of them made topics by itself.
            return True
        case "ConsumerGroupHeartbeat", ("memberId",), 0:
            # Each draws the id of a member without one.
            return True
        case _:
            return False


@contextmanager
def run(both_nodes: BothNodes) -> Generator[tuple[Broker, Broker]]:
    with (
        both_nodes(SETTINGS) as (real, ours),
        closing(Broker(ours.address)) as our_broker,
        closing(Broker(real.address)) as real_broker,
    ):
        yield our_broker, real_broker


@pytest.fixture(scope="module")
def brokers(both_nodes: BothNodes) -> Iterator[tuple[Broker, Broker]]:
    """Ours and a real one, for all requests."""
    with run(both_nodes) as running:
        yield running


@pytest.fixture
def fresh_brokers(both_nodes: BothNodes) -> Iterator[tuple[Broker, Broker]]:
    """Ours and a real one, of which neither has taken a record that the other has failed over."""
    with run(both_nodes) as running:
        yield running


def answers(
    brokers: tuple[Broker, Broker], to_ours: Message, to_real: Message, version: int
) -> tuple[Json, Json]:
    """Return what ours says to a request, and what the real one says."""
    ours, real = brokers
    expected = real.said(to_real, version, SILENCE_S, own=OWN)
    # Ours has all the time where the real one answers.
    patience_s = SILENCE_S if expected == NO_ANSWER else PATIENCE_S
    return ours.said(to_ours, version, patience_s, own=OWN), expected


def are_alike(ask: Callable[[], tuple[Json, Json]]) -> bool:
    """Return whether both now say the same, in what counts."""
    found, expected = ask()
    return not is_met_otherwise(found, expected)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_no_value_of_a_field_is_met_otherwise_than_by_kafka(
    brokers: tuple[Broker, Broker], name: str
) -> None:
    ours, real = brokers
    served = broker_apis()[KEYS[name]]
    differing, compared = list[str](), 0
    first = served.min_version if IS_WHOLE else served.max_version
    for version in range(first, served.max_version + 1):
        both = zip(ours.requests(name, version), real.requests(name, version), strict=True)
        for (what, to_ours), (_, to_real) in both:
            try:
                to_real.encode(version)
            except EncodeError:
                continue
            ask = partial(answers, brokers, to_ours, to_real, version)
            if name in OF_TRANSACTIONS:
                wait_for(partial(are_alike, ask), f"v{version} {what}: alike", otherwise=ask)
            found, expected = ask()
            if is_met_otherwise(found, expected):
                differing.append(f"v{version} {what}\n  ours {found}\n  real {expected}")
            compared += not is_failure(expected)
    assert not differing, f"{len(differing)} of {compared}\n" + "\n".join(differing[:20])
    assert compared


DAMAGED: Final = tuple(
    name for name in NAMES if name not in {"DescribeLogDirs", "AlterReplicaLogDirs"}
)
"""Requests whose answers do not tell of a broker's directories."""
HEADER_BYTES: Final = 13
"""At least so many bytes come before the body: key, version, correlation id and client id."""


def _damage(random: Random, length: int) -> Callable[[bytes], bytes]:
    """Return what is done to a frame: a byte changed, added or lost, its end lost or prolonged."""
    place, kind = random.randint(HEADER_BYTES, length), random.randrange(5)
    byte = bytes([random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))])

    def damaged(frame: bytes) -> bytes:
        before, after = frame[:place], frame[place:]
        match kind:
            case 0:
                return before + byte + after[1:]
            case 1:
                return before + byte + after
            case 2:
                return before + after[1:]
            case 3:
                return before
            case _:
                return frame + byte

    return damaged


def _is_taken_by_kafka_alone(frame: bytes, name: str, version: int) -> bool:
    """Return whether ours differ on purpose (docs/differences.md) about a damaged request."""
    _, start = decode_request_header(frame)
    try:
        request_class(KEYS[name]).decode_from(frame, start, version)
    except DecodeError as error:
        # Tagged fields that are not in order, or twice there.
        return "comes after tag" in str(error)
    return False


@pytest.mark.slow
def test_a_damaged_request_is_met_as_by_kafka(fresh_brokers: tuple[Broker, Broker]) -> None:
    """The topic's id is left out: what a changed byte of it makes differs from broker to broker."""
    ours, real = fresh_brokers
    random, differing, codes = Random(SEED), list[str](), Counter[str]()
    own = OWN | {"topicId"}
    for number in range(STEPS):
        name = random.choice(DAMAGED)
        served = broker_apis()[KEYS[name]]
        version = random.randint(served.min_version, served.max_version)
        frames = [broker.frame(name, version) for broker in fresh_brokers]
        damage = _damage(random, len(frames[0]))
        to_ours, to_real = damaged = [damage(frame) for frame in frames]
        if len({sent == whole for sent, whole in zip(damaged, frames, strict=True)}) > 1:
            # The byte of one topic's id was the new one already.
            continue
        expected = real.said_to_frame(to_real, KEYS[name], version, SILENCE_S, own=own)
        # Ours has all the time where the real one answers.
        is_silent = any(expected == silence for silence in (SILENT, NO_ANSWER))
        patience_s = SILENCE_S if is_silent else PATIENCE_S
        found = ours.said_to_frame(to_ours, KEYS[name], version, patience_s, own=own)
        codes[expected if isinstance(expected, str) else "answer"] += 1
        is_failed = expected == SILENT or (expected != NO_ANSWER and is_failure(expected))
        if found == expected or is_failed or _is_taken_by_kafka_alone(to_ours, name, version):
            continue
        if found == real.said_to_frame(to_ours, KEYS[name], version, SILENCE_S, own=own):
            # Bytes of the topics' ids, which differ, have become something else.
            continue
        differing.append(
            f"{number}: {name} v{version} {to_ours.hex()}\n  ours {found}\n  real {expected}"
        )
    assert not differing, f"{len(differing)} of {codes}\n" + "\n".join(differing[:20])
    assert min(codes["answer"], codes[NO_ANSWER]) > STEPS // 5, codes
