"""The quorum's own requests to a real controller and to ours, in every version: equal answers.

Then every field of them at its limits and beyond: each request differs in a single field from one
that leaves a lone leader as it is. Epochs above the leader's are left out: it gives way to them, as
it should. The newest version of each request; all versions with KVORUM_BAD_INPUT=all.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from typing import Any, Final, cast

import pytest
from tests.interop.differential.comparing import is_failure, is_met_otherwise
from tests.interop.differential.limits import changed_bodies, description, value_at
from tests.interop.differential.script import message_of
from tests.interop.differential.sides import NO_ANSWER
from tests.interop.protocol.building import build, comparable
from tests.interop.protocol.raft_requests import OTHER, Quorum, requests_for, steps_of_giving_way
from tests.interop.protocol.requests import Fields
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import LEVELS_OF_OURS, STANDALONE, BothNodes, Node
from tests.support.raw_client import RawClient
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.node.handlers.registry import controller_apis
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import API_SPECS, request_class, response_class
from kvorum.wire.errors import EncodeError
from kvorum.wire.json_form import Json, to_json
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kvorum.wire.primitives import Message

CONTROLLERS_ENDPOINTS = 2


# The two logs may have different ends and contents.
OWN = frozenset({"records", "endOffset", "highWatermark", "logStartOffset"})


def quorum_of(address: str) -> Quorum:
    """Return what requests to a lone leader have to name."""
    partition = DescribeQuorumRequest.PartitionData(0)
    topic = DescribeQuorumRequest.TopicData("__cluster_metadata", [partition])
    with RawClient(address) as client:
        cluster = client.ask(
            DescribeClusterRequest(endpoint_type=CONTROLLERS_ENDPOINTS), DescribeClusterResponse, 2
        )
        described = client.ask(DescribeQuorumRequest([topic]), DescribeQuorumResponse, 2)
    found = described.topics[0].partitions[0]
    host, _, port = address.partition(":")
    return Quorum(
        cluster_id=cluster.cluster_id,
        directory_id=found.current_voters[0].replica_directory_id,
        epoch=found.leader_epoch,
        host=host,
        port=int(port),
    )


def without_own(value: Json) -> Json:
    """Return an answer without what the two nodes cannot have in common."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Json]", value)
        return {name: None if name in OWN else without_own(each) for name, each in fields.items()}
    if isinstance(value, list):
        return [without_own(each) for each in cast("list[Fields]", value)]
    return value


def answer(address: str, request: Message, version: int, *, patience_s: float = PATIENCE_S) -> Json:
    """Return what a node says to a request."""
    with RawClient(address) as client:
        client.socket.settimeout(patience_s)
        response = client.ask(request, response_class(request.API_KEY or 0), version)
    return without_own(comparable(response, version))


ANSWERED_KEYS = (
    ApiKey.FETCH,
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.UPDATE_RAFT_VOTER,
)


@pytest.fixture(scope="module")
def addresses(both_nodes: BothNodes) -> Iterator[tuple[str, str]]:
    """The controller listeners of ours and of the real node."""
    with both_nodes() as (real, ours):
        yield ours.controller, real.controller


def answers(address: str, fields: Fields, *, key: int, version: int) -> Json:
    """Return what a node says to fields; None where this version cannot carry them."""
    request = build(request_class(key), fields)
    try:
        request.encode(version)
    except EncodeError:
        return None
    return answer(address, request, version)


@pytest.mark.sample
@pytest.mark.parametrize(
    "key", [pytest.param(key, id=API_SPECS[key].name) for key in ANSWERED_KEYS]
)
def test_every_version_is_answered_alike(addresses: tuple[str, str], key: int) -> None:
    ours, real = addresses
    both = [requests_for(quorum_of(address))[key] for address in (ours, real)]
    served = controller_apis()[key]
    compared, differing = 0, list[tuple[int, Fields, Json, Json]]()
    for version in range(served.min_version, served.max_version + 1):
        for our_fields, real_fields in zip(*both, strict=True):
            expected = answers(real, real_fields, key=key, version=version)
            found = answers(ours, our_fields, key=key, version=version)
            compared += expected is not None
            if found != expected:
                differing.append((version, our_fields, found, expected))
    assert not differing, "\n".join(
        f"v{version} {fields}\n  ours {found}\n  real {expected}"
        for version, fields, found, expected in differing
    )
    assert compared >= len(both[0])


@pytest.mark.sample
def test_a_part_of_a_snapshot_is_refused_as_a_real_node_means_to(
    addresses: tuple[str, str],
) -> None:
    """A real node cannot write the answer it has made: it leaves out the bytes, which may not be
    null, fails on that, and says UNKNOWN_SERVER_ERROR. Ours says what it was about to say, which
    its followers understand: they then ask for another snapshot, not for the same for ever.
    """
    ours, real = addresses
    both = [requests_for(quorum_of(address))[ApiKey.FETCH_SNAPSHOT] for address in (ours, real)]
    unwritten: Json = {"throttleTimeMs": 0, "errorCode": -1, "topics": []}
    meant = iter((98, 98, 3, 3, 98, 98, 74, 75))
    for our_fields, real_fields in zip(*both, strict=True):
        expected = answers(real, real_fields, key=ApiKey.FETCH_SNAPSHOT, version=1)
        found = cast(
            "dict[str, Any]", answers(ours, our_fields, key=ApiKey.FETCH_SNAPSHOT, version=1)
        )
        if expected == unwritten:
            assert found["errorCode"] == 0
            assert found["topics"][0]["partitions"][0]["errorCode"] == next(meant)
        else:
            assert found == expected
    assert next(meant, None) is None


@pytest.mark.sample
def test_a_leader_gives_way_as_a_real_one_does(addresses: tuple[str, str]) -> None:
    said: list[list[Json]] = []
    for address in addresses:
        steps = steps_of_giving_way(quorum_of(address))
        said.append([answers(address, f, key=key, version=v) for key, v, f in steps])
        await_leadership(address)
    for number, (found, expected) in enumerate(zip(*said, strict=True)):
        assert found == expected, number
        assert expected is not None


def await_leadership(address: str) -> None:
    """Ask until the node leads again."""
    wait_for(
        lambda: bool(quorum_of(address).directory_id),
        f"{address} leads again",
        not_yet=(IndexError,),
    )


IS_WHOLE: Final = os.environ.get("KVORUM_BAD_INPUT") == "all"
LIMITED_KEYS: Final = (
    ApiKey.FETCH,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.API_VERSIONS,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.FETCH_SNAPSHOT,
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.UPDATE_RAFT_VOTER,
)
EPOCHS: Final = frozenset({"replicaEpoch", "leaderEpoch"})
FIRST_WITH_REPLICA_STATE: Final = 15
SILENCE_S: Final = 3.0
"""The time after which a silent real node counts as one that never answers."""


def good(key: int, quorum: Quorum, version: int) -> Fields:
    """Return the fields of a request that changes nothing."""
    of_key = list(requests_for(quorum).get(key, ()))
    match API_SPECS[key].name:
        case "SaslHandshake":
            return {"mechanism": "PLAIN"}
        case "ApiVersions":
            return {"client_software_name": "limits", "client_software_version": "1.0"}
        case "SaslAuthenticate":
            return {"auth_bytes": b"\0name\0secret"}
        case "AddRaftVoter":
            return {**of_key[0], "cluster_id": quorum.cluster_id, "voter_id": 1}
        case "RemoveRaftVoter":
            return {**of_key[0], "cluster_id": quorum.cluster_id, "voter_directory_id": OTHER}
        case "UpdateRaftVoter":
            return {**of_key[0], "cluster_id": quorum.cluster_id}
        case "Fetch":
            # Replicas name themselves in another field from then on.
            return of_key[0 if version < FIRST_WITH_REPLICA_STATE else 1]
        case "FetchSnapshot":
            return of_key[0]
        case _:
            return of_key[2]


def at_limits(key: int, quorum: Quorum, version: int) -> Iterator[tuple[str, Message]]:
    """Yield requests with one field at a limit, and what it is."""
    kind = request_class(key)
    unchanged = cast("Mapping[str, Any]", to_json(build(kind, good(key, quorum, version)), version))
    for path, body in changed_bodies(kind, unchanged, version):
        if path[-1] not in EPOCHS or value_at(path, body) <= quorum.epoch:
            yield description(path, body), message_of(kind, body, version)


def said(address: str, request: Message, version: int, patience_s: float) -> Json:
    """Return what a node says to a request, or that it does not."""
    try:
        return answer(address, request, version, patience_s=patience_s)
    except (AssertionError, OSError):
        return NO_ANSWER


class LoneLeaders:
    """One node of ours and a real one, both made again when the real one has ended."""

    def __init__(self, java: Java, tools: ToolRunner, folder: Path) -> None:
        self._java, self._tools, self._folder = java, tools, folder
        self._running = ExitStack()
        self._started = 0
        self.start()

    def start(self) -> None:
        """Start both on empty disks."""
        self._running.close()
        self._started += 1
        folder = self._folder / str(self._started)
        ours = Node(folder / "ours").format()
        real = Node(folder / "real", java=self._java).format(
            (*STANDALONE, *LEVELS_OF_OURS), tools=self._tools
        )
        # The real one may have ended by itself before it is to stop.
        self._running.enter_context(ours.process)
        self._running.enter_context(real.process)
        self.ours, self.real = ours.controller, real.controller

    def close(self) -> None:
        self._running.close()

    def quorums(self) -> tuple[Quorum, Quorum] | None:
        """Return what leads where, None once the real one has ended."""
        quorum = quorum_of(self.ours)
        try:
            return quorum, quorum_of(self.real)
        except (OSError, AssertionError):
            return None


@pytest.fixture(scope="module")
def leaders(
    java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LoneLeaders]:
    """Two leaders, for all requests."""
    folder = tmp_path_factory.mktemp("raft-limits")
    with closing(LoneLeaders(java, kafka_tools, folder)) as leaders:
        yield leaders


def requests_to_both(
    leaders: LoneLeaders, key: int, version: int
) -> Iterator[tuple[str, Message, Message]]:
    """Yield what is changed, and the request to ours and to the real node as they are then.

    Whatever it is, both go on to lead as before, unless the real node ends.
    """
    done = 0
    while True:
        quorums = leaders.quorums()
        if quorums is None:
            leaders.start()
            continue
        both = zip(*(at_limits(key, quorum, version) for quorum in quorums), strict=True)
        for (what, to_ours), (_, to_real) in islice(both, done, None):
            done += 1
            yield what, to_ours, to_real
            after = leaders.quorums()
            if after is None:
                break
            assert after == quorums, what
        else:
            return


@pytest.mark.slow
@pytest.mark.parametrize("key", [pytest.param(key, id=API_SPECS[key].name) for key in LIMITED_KEYS])
def test_no_value_of_a_field_is_met_otherwise_than_by_kafka(leaders: LoneLeaders, key: int) -> None:
    served = controller_apis()[key]
    differing, compared = list[str](), 0
    first = served.min_version if IS_WHOLE else served.max_version
    for version in range(first, served.max_version + 1):
        for what, to_ours, to_real in requests_to_both(leaders, key, version):
            try:
                to_real.encode(version)
            except EncodeError:
                continue
            expected = said(leaders.real, to_real, version, SILENCE_S)
            # Ours has all the time where the real one answers.
            patience_s = SILENCE_S if expected == NO_ANSWER else PATIENCE_S
            found = said(leaders.ours, to_ours, version, patience_s)
            compared += not is_failure(expected)
            if is_met_otherwise(found, expected):
                differing.append(f"v{version} {what}\n  ours {found}\n  real {expected}")
    assert not differing, f"{len(differing)} of {compared}\n" + "\n".join(differing[:20])
    assert compared
