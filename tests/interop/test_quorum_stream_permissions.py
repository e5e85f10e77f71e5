"""Controllers that let a stream read too little, or not at all: what is said then."""

from collections.abc import Iterator, Mapping

import pytest
from tests.interop.stream_rows import stream_over
from tests.support.acls import WITH_AUTHORIZER, add_entries, entry
from tests.support.node import CLUSTER_ID
from tests.support.ports import listens
from tests.support.quorum.quorum import MakeQuorum, Quorum
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.metadata.acl_codes import CLUSTER_NAME, AclOperation, AclResourceType, PermissionType
from kvorum.spark.errors import QuorumError

pytestmark = pytest.mark.slow
SASL = {
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="controller" password="secret" user_controller="secret";'
    ),
}


@pytest.fixture(params=["kvorum", "kafka"])
def quorum(request: pytest.FixtureRequest, make_quorum: MakeQuorum) -> Iterator[Quorum]:
    with make_quorum(request.param, 1, WITH_AUTHORIZER) as found:
        found.form([1])
        found.start()
        found.settled(found.keys(1))
        yield found


def add_entry(address: str, operation: AclOperation, permission: PermissionType) -> None:
    with RawClient(address) as client:
        add_entries(
            client, entry(AclResourceType.CLUSTER, CLUSTER_NAME, operation, permission=permission)
        )


def result(options: Mapping[str, str]) -> str:
    """Return the error of a stream, or how it fared without one."""
    stream = stream_over(options)
    try:
        return "some rows" if stream.advance() else "nothing"
    except QuorumError as error:
        return str(error)
    finally:
        stream.stop()


def comes_to_be(options: Mapping[str, str], said: str) -> None:
    """Wait for a result: an authorizer takes entries a moment after they are acknowledged."""
    wait_for(
        lambda: said in result(options),
        f"{said!r} is the result",
        otherwise=lambda: result(options),
    )


def test_what_is_not_allowed_is_named(quorum: Quorum) -> None:
    address = quorum.addresses
    options = {"controllers": address, "retryTimeoutMs": "10000"}
    add_entry(address, AclOperation.ALTER, PermissionType.ALLOW)
    comes_to_be(options, "authorizer must allow ClusterAction")
    add_entry(address, AclOperation.CLUSTER_ACTION, PermissionType.ALLOW)
    comes_to_be(options, "some rows")
    stream = stream_over(options)
    assert stream.advance()
    add_entry(address, AclOperation.ALTER, PermissionType.DENY)
    comes_to_be(options, "give option 'cluster.id'")
    comes_to_be({**options, "cluster.id": CLUSTER_ID}, "some rows")
    # The checkpoint has the id.
    stream.restart()
    assert "ACCESS_CONTROL_ENTRY_RECORD" in {row["type"] for row in stream.advance()}
    stream.stop()


def test_a_listener_that_wants_sasl_is_reported(make_quorum: MakeQuorum) -> None:
    with make_quorum("kafka", 1, SASL) as quorum:
        quorum.form([1])
        quorum.start()
        quorum.wait_for(lambda: listens(quorum.addresses), "the controller listens")
        options = {"controllers": quorum.addresses, "retryTimeoutMs": "1000"}
        comes_to_be(options, "listeners do that are not PLAINTEXT")
