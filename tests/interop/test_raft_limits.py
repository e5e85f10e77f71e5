"""Every field of the quorum's requests at its limits and beyond, beside a real controller.

Each request differs in a single field from one that leaves a lone leader as it is. Epochs above the
leader's are left out: it gives way to them, as it should (`test_raft_answers`). The newest version
of each request; all versions with KVORUM_BAD_INPUT=all.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from typing import Any, Final, cast

import pytest
from tests.interop.differential.failures import is_failure, is_met_otherwise
from tests.interop.differential.limits import changed_bodies, description, value_at
from tests.interop.differential.messages import message_of
from tests.interop.differential.sides import NO_ANSWER
from tests.interop.protocol.building import build
from tests.interop.protocol.raft_requests import OTHER, Quorum, requests_for
from tests.interop.protocol.requests import Fields
from tests.interop.raft_answers import answer, quorum_of
from tests.support.kafka.java import Java
from tests.support.kafka.tools import ToolRunner
from tests.support.node import Node
from tests.support.waiting import PATIENCE_S

from kvorum.node.handlers.registry import controller_apis
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import API_SPECS, request_class
from kvorum.wire.errors import EncodeError
from kvorum.wire.json_form import Json, to_json
from kvorum.wire.primitives import Message

IS_WHOLE: Final = os.environ.get("KVORUM_BAD_INPUT") == "all"
KEYS: Final = (
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
        real = Node(folder / "real", java=self._java).format(tools=self._tools)
        # The real one may have ended by itself before it is to stop.
        self._running.enter_context(ours.process)
        self._running.enter_context(real.process)
        self.ours, self.real = ours.controller, real.controller

    def close(self) -> None:
        """Stop both."""
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
@pytest.mark.parametrize("key", [pytest.param(key, id=API_SPECS[key].name) for key in KEYS])
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
