"""A node with an authorizer: who may ask what, what a refusal looks like, and what it hides.

What interop/test_access_tools.py compares with a real broker is not here again.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import pytest
from tests.support.raw_client import RawClient
from tests.support.topics import add_entries, create_request, create_topic, entry
from tests.support.waiting import wait_for

from kvorum.metadata.acl_codes import (
    CLUSTER_NAME,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
)
from kvorum.metadata.api import RequestError
from kvorum.metadata.standard_authorizer import Principal
from kvorum.node.principal_serde import encode_principal
from kvorum.node.raft.translation.fetch import refuse_fetch
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_response_frame, encode_request_frame
from kvorum.wire.messages.create_acls import CreateAclsRequest
from kvorum.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kvorum.wire.messages.create_topics import CreateTopicsResponse
from kvorum.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from kvorum.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kvorum.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kvorum.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kvorum.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from kvorum.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kvorum.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kvorum.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from kvorum.wire.primitives import Message

Response = TypeVar("Response", bound=Message)
ALICE = Principal("User", "alice")
BOB = Principal("User", "bob")
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
CLIENT_HOST = bytes([10, 1, 2, 3])
ANY_ENTRY: dict[str, Any] = {
    "resource_type_filter": AclResourceType.ANY,
    "pattern_type_filter": PatternType.ANY,
    "resource_name_filter": None,
    "principal_filter": None,
    "host_filter": None,
    "operation": AclOperation.ANY,
    "permission_type": PermissionType.ANY,
}
USER_BOB = "User:bob"
NAMES = ["secret", "open"]
EVERY_OPERATION = 3576
NOT_TOLD = -(2**31)
BARRED_HOST = "127.0.0.9"
"""A machine from which no client may act as a broker."""


@pytest.fixture(scope="module")
def restricted() -> Iterator[Cluster]:
    """A node on which only the users of its own listeners may do everything."""
    overrides = {
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS",
        "delegation.token.secret.key": "a secret",
    }
    with Cluster(overrides=overrides) as cluster:
        yield cluster


@pytest.fixture
def client(restricted: Cluster) -> Iterator[RawClient]:
    """A connection to the controller of that node, without any entries."""
    with RawClient(restricted.controller_servers) as connection:
        everything = DeleteAclsRequest.DeleteAclsFilter(**ANY_ENTRY)
        connection.ask(DeleteAclsRequest(filters=[everything]), DeleteAclsResponse, 3)
        yield connection


def enveloped(client: RawClient, principal: Principal, frame: bytes) -> EnvelopeResponse:
    """Pass on a request for a user, as a broker does."""
    envelope = EnvelopeRequest(
        request_data=frame,
        request_principal=encode_principal(principal),
        client_host_address=CLIENT_HOST,
    )
    return client.ask(envelope, EnvelopeResponse, 0)


def as_user(
    client: RawClient, principal: Principal, request: Message, kind: type[Response], version: int
) -> Response:
    frame = encode_request_frame(request, version=version, correlation_id=7, client_id="c")
    envelope = enveloped(client, principal, frame)
    assert (envelope.error_code, envelope.response_data is None) == (ErrorCode.NONE, False)
    data = bytes(envelope.response_data or b"")
    return decode_response_frame(data, response_class=kind, version=version)[1]


def on_topic(
    operation: AclOperation, name: str, *, host: str = "*"
) -> CreateAclsRequest.AclCreation:
    return entry(AclResourceType.TOPIC, name, operation, principal=ALICE.text, host=host)


def test_entries_are_created_once_and_described(client: RawClient) -> None:
    add_entries(client, on_topic(AclOperation.READ, "a"), on_topic(AclOperation.READ, "a"))
    add_entries(client, on_topic(AclOperation.READ, "a"), on_topic(AclOperation.WRITE, "a"))
    response = client.ask(DescribeAclsRequest(**ANY_ENTRY), DescribeAclsResponse, 3)
    assert response.error_code == 0
    (resource,) = response.resources
    assert (resource.resource_type, resource.resource_name, resource.pattern_type) == (2, "a", 3)
    assert [(acl.principal, acl.operation) for acl in resource.acls] == [
        ("User:alice", AclOperation.READ),
        ("User:alice", AclOperation.WRITE),
    ]


def test_a_whole_request_is_refused_and_allowed_by_the_user_inside_an_envelope(
    client: RawClient,
) -> None:
    request = UpdateFeaturesRequest()
    response = as_user(client, ALICE, request, UpdateFeaturesResponse, 2)
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert (response.error_message or "").endswith(" needs ALTER permission.")
    alter = entry(AclResourceType.CLUSTER, CLUSTER_NAME, AclOperation.ALTER, principal=ALICE.text)
    add_entries(client, alter)
    assert as_user(client, ALICE, request, UpdateFeaturesResponse, 2).error_code == 0
    response = as_user(client, BOB, request, UpdateFeaturesResponse, 2)
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_the_host_is_the_one_in_the_envelope(client: RawClient) -> None:
    add_entries(client, on_topic(AclOperation.CREATE, "from-there", host="10.1.2.3"))
    add_entries(client, on_topic(AclOperation.CREATE, "from-here", host="127.0.0.1"))
    response = as_user(
        client, ALICE, create_request(["from-there", "from-here"]), CreateTopicsResponse, 7
    )
    assert {topic.name: topic.error_code for topic in response.topics} == {
        "from-there": 0,
        "from-here": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }


def test_describing_the_quorum_for_a_user_is_authorized_as_well(client: RawClient) -> None:
    response = as_user(client, ALICE, DescribeQuorumRequest(), DescribeQuorumResponse, 2)
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert response.error_message == ErrorCode.CLUSTER_AUTHORIZATION_FAILED.default_message


def test_what_is_created_is_shown_only_to_clients_that_may_describe_its_configuration(
    client: RawClient,
) -> None:
    add_entries(
        client, on_topic(AclOperation.CREATE, "blind"), on_topic(AclOperation.CREATE, "seen")
    )
    add_entries(client, on_topic(AclOperation.ALTER_CONFIGS, "seen"))
    response = as_user(
        client, ALICE, create_request(["blind", "seen", "denied"]), CreateTopicsResponse, 7
    )
    blind, seen, denied = response.topics
    assert (blind.error_code, blind.topic_config_error_code) == (0, 29)
    assert (blind.num_partitions, blind.replication_factor, blind.configs) == (-1, -1, [])
    assert (seen.error_code, seen.topic_config_error_code, seen.num_partitions) == (0, 0, 1)
    assert seen.configs
    assert (denied.name, denied.error_code) == ("denied", 29)
    assert denied.error_message == "Authorization failed."


def test_deleting_does_not_tell_which_topics_there_are(client: RawClient) -> None:
    created = client.ask(create_request(["hidden", "shown", "own"]), CreateTopicsResponse, 7)
    ids = {topic.name: topic.topic_id for topic in created.topics}
    add_entries(
        client, on_topic(AclOperation.DESCRIBE, "shown"), on_topic(AclOperation.DELETE, "own")
    )
    add_entries(client, on_topic(AclOperation.DESCRIBE, "shown-but-none"))
    named = ["hidden", "none", "shown", "shown-but-none", "own"]
    states = [DeleteTopicsRequest.DeleteTopicState(name) for name in named]
    states += [DeleteTopicsRequest.DeleteTopicState(None, ids[one]) for one in ("hidden", "shown")]
    request = DeleteTopicsRequest(topics=states, timeout_ms=9_999)
    found = {
        (topic.name, topic.topic_id if any(topic.topic_id) else None): topic.error_code
        for topic in as_user(client, ALICE, request, DeleteTopicsResponse, 6).responses
    }
    assert found == {
        ("hidden", None): 29,
        ("none", None): 29,
        ("shown", None): 29,
        ("shown-but-none", None): 3,
        ("own", ids["own"]): 0,
        (None, ids["hidden"]): 29,
        ("shown", ids["shown"]): 29,
    }


def test_configurations_of_each_resource_are_authorized_by_themselves(client: RawClient) -> None:
    client.ask(create_request(["configured"]), CreateTopicsResponse, 7)
    add_entries(client, on_topic(AclOperation.ALTER_CONFIGS, "configured"))
    change = IncrementalAlterConfigsRequest.AlterableConfig("retention.ms", 0, "1")
    resources = [
        IncrementalAlterConfigsRequest.AlterConfigsResource(kind, name, [change])
        for kind, name in ((2, "configured"), (2, "other"), (4, ""), (32, "group"), (8, "1"))
    ]
    request = IncrementalAlterConfigsRequest(resources=resources)
    response = as_user(client, ALICE, request, IncrementalAlterConfigsResponse, 1)
    assert {(r.resource_type, r.resource_name): r.error_code for r in response.responses} == {
        (2, "configured"): 0,
        (2, "other"): 29,
        (4, ""): 31,
        (32, "group"): 30,
        (8, "1"): 31,
    }


def test_tokens_live_through_envelopes(client: RawClient) -> None:
    request = CreateDelegationTokenRequest(max_lifetime_ms=-1)
    created = as_user(client, ALICE, request, CreateDelegationTokenResponse, 3)
    assert (created.error_code, created.principal_name) == (0, "alice")
    assert created.token_requester_principal_name == "alice"
    assert created.max_timestamp_ms - created.issue_timestamp_ms == 604_800_000
    renewal = RenewDelegationTokenRequest(hmac=created.hmac, renew_period_ms=1_000)
    renewed = as_user(client, BOB, renewal, RenewDelegationTokenResponse, 2)
    assert renewed.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    renewed = as_user(client, ALICE, renewal, RenewDelegationTokenResponse, 2)
    assert renewed.error_code == 0
    assert 0 < renewed.expiry_timestamp_ms < created.expiry_timestamp_ms
    end = ExpireDelegationTokenRequest(hmac=created.hmac, expiry_time_period_ms=-1)
    codes = [
        as_user(client, ALICE, end, ExpireDelegationTokenResponse, 2).error_code for _ in range(2)
    ]
    assert codes == [ErrorCode.NONE, ErrorCode.DELEGATION_TOKEN_NOT_FOUND]


def test_a_token_for_another_user_needs_a_permission(client: RawClient) -> None:
    request = CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name="bob", max_lifetime_ms=-1
    )
    refused = as_user(client, ALICE, request, CreateDelegationTokenResponse, 3)
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (refused.principal_name, refused.issue_timestamp_ms) == ("bob", -1)
    tokens_of_bob = entry(
        AclResourceType.USER, BOB.text, AclOperation.CREATE_TOKENS, principal=ALICE.text
    )
    add_entries(client, tokens_of_bob)
    created = as_user(client, ALICE, request, CreateDelegationTokenResponse, 3)
    assert (created.error_code, created.principal_name) == (0, "bob")


def test_no_client_has_to_do_with_tokens_without_authenticating(
    client: RawClient, restricted: Cluster
) -> None:
    with RawClient(restricted.bootstrap_servers) as broker:
        for asked in (client, broker):
            created = asked.ask(CreateDelegationTokenRequest(), CreateDelegationTokenResponse, 3)
            renewed = asked.ask(RenewDelegationTokenRequest(), RenewDelegationTokenResponse, 2)
            ended = asked.ask(ExpireDelegationTokenRequest(), ExpireDelegationTokenResponse, 2)
            told = asked.ask(DescribeDelegationTokenRequest(), DescribeDelegationTokenResponse, 3)
            codes = {a.error_code for a in (created, renewed, ended, told)}
            assert codes == {ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED}
            assert renewed.expiry_timestamp_ms == ended.expiry_timestamp_ms == -1
    with_token = Principal("User", "alice", is_token_authenticated=True)
    refused = as_user(
        client, with_token, CreateDelegationTokenRequest(), CreateDelegationTokenResponse, 3
    )
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_a_user_inside_an_envelope_cannot_send_one(client: RawClient) -> None:
    inner = EnvelopeRequest(client_host_address=CLIENT_HOST)
    frame = encode_request_frame(inner, version=0, correlation_id=7, client_id="c")
    assert enveloped(client, ALICE, frame).error_code == ErrorCode.INVALID_REQUEST


def test_expired_tokens_are_removed_by_the_clock() -> None:
    overrides = {
        "delegation.token.secret.key": "a secret",
        "delegation.token.expiry.check.interval.ms": "10",
    }
    with Cluster(overrides=overrides) as cluster, RawClient(cluster.controller_servers) as client:
        request = CreateDelegationTokenRequest(max_lifetime_ms=1)
        created = as_user(client, ALICE, request, CreateDelegationTokenResponse, 3)
        assert created.error_code == 0
        renewal = RenewDelegationTokenRequest(hmac=created.hmac)

        def is_gone() -> bool:
            renewed = as_user(client, ALICE, renewal, RenewDelegationTokenResponse, 2)
            return renewed.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND

        wait_for(is_gone, "the token is removed")


class Closing(NamedTuple):
    """The node, and the id of the topic that no client may name."""

    cluster: Cluster
    secret_id: bytes


@pytest.fixture(scope="module")
def closing() -> Iterator[Closing]:
    """A node that lets everyone do what no entry is about; then there are some.

    Clients may pass on requests, as brokers have to, and that is all on the cluster. The topic
    "secret" is another user's.
    """
    overrides = {
        "authorizer.class.name": AUTHORIZER,
        "allow.everyone.if.no.acl.found": " True ",
        "super.users": "User:root; User:admin",
    }
    with Cluster(overrides=overrides) as cluster:
        with RawClient(cluster.controller_servers) as controller:
            create_topic(controller, "open")
            secret_id = create_topic(controller, "secret")
            add_entries(
                controller,
                entry(AclResourceType.TOPIC, "secret", AclOperation.READ, principal=USER_BOB),
                entry(AclResourceType.TOPIC, "new-secret", AclOperation.CREATE, principal=USER_BOB),
                entry(AclResourceType.TOPIC, "new-secret", AclOperation.DESCRIBE),
                entry(AclResourceType.CLUSTER, CLUSTER_NAME, AclOperation.CLUSTER_ACTION),
                entry(
                    AclResourceType.CLUSTER,
                    CLUSTER_NAME,
                    AclOperation.CLUSTER_ACTION,
                    host=BARRED_HOST,
                    permission=PermissionType.DENY,
                ),
            )
        yield Closing(cluster, secret_id)


@pytest.fixture
def stranger(closing: Closing) -> Iterator[RawClient]:
    with RawClient(closing.cluster.bootstrap_servers) as connection:
        yield connection


def test_metadata_hides_topics_that_a_client_may_not_describe(stranger: RawClient) -> None:
    every = stranger.ask(MetadataRequest(topics=None), MetadataResponse, 12)
    assert {"open", "secret"} & {topic.name for topic in every.topics} == {"open"}
    asked = [MetadataRequestTopic(name=name) for name in (*NAMES, "new-secret", "new")]
    request = MetadataRequest(
        topics=asked, allow_auto_topic_creation=True, include_topic_authorized_operations=True
    )
    response = stranger.ask(request, MetadataResponse, 12)
    assert {t.name: (t.error_code, t.topic_authorized_operations) for t in response.topics} == {
        "open": (0, EVERY_OPERATION),
        "secret": (29, NOT_TOLD),
        "new-secret": (29, NOT_TOLD),
        "new": (3, EVERY_OPERATION),
    }


def test_a_topic_asked_for_by_its_id_is_not_named(stranger: RawClient, closing: Closing) -> None:
    asked = MetadataRequestTopic(name=None, topic_id=closing.secret_id)
    (topic,) = stranger.ask(MetadataRequest(topics=[asked]), MetadataResponse, 12).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (29, None, closing.secret_id)


def test_requests_about_records_tell_a_missing_permission_first(
    stranger: RawClient, closing: Closing
) -> None:
    asked = [
        ListOffsetsRequest.ListOffsetsTopic(
            name=name, partitions=[ListOffsetsRequest.ListOffsetsPartition(0, -1, -1)]
        )
        for name in NAMES
    ]

    def codes() -> dict[str, int] | None:
        offsets = stranger.ask(ListOffsetsRequest(topics=asked), ListOffsetsResponse, 7)
        found = {topic.name: topic.partitions[0].error_code for topic in offsets.topics}
        # A broker knows of a partition before it has made its log.
        return None if found["open"] == ErrorCode.NOT_LEADER_OR_FOLLOWER else found

    assert wait_for(codes, "it is hosted") == {"open": 0, "secret": 29}
    topic = FetchRequest.FetchTopic(
        topic_id=closing.secret_id, partitions=[FetchRequest.FetchPartition(partition=0)]
    )
    fetched = stranger.ask(FetchRequest(topics=[topic]), FetchResponse, 13)
    assert fetched.responses[0].partitions[0].error_code == 29


def test_refused_fetches_name_partitions_in_old_versions() -> None:
    topic = FetchRequest.FetchTopic("t", partitions=[FetchRequest.FetchPartition(3)])
    request = FetchRequest(session_id=5, topics=[topic])
    error = RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    old, new = (refuse_fetch(request, error, version) for version in (12, 13))
    assert (old.error_code, old.session_id) == (new.error_code, new.session_id) == (31, 5)
    assert [
        (t.topic, p.partition_index, p.error_code) for t in old.responses for p in t.partitions
    ] == [("t", 3, 31)]
    assert new.responses == []
    old.encode(12)


def test_a_follower_needs_a_permission_on_the_cluster_and_none_on_the_topic(
    closing: Closing,
) -> None:
    wish = FetchRequest.FetchPartition(partition_max_bytes=1000)
    request = FetchRequest(replica_id=55, topics=[FetchRequest.FetchTopic("secret", b"", [wish])])
    request.topics[0].topic_id = closing.secret_id
    for host, expected in (
        # No replica of the partition is on a broker 55.
        ("", ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (BARRED_HOST, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ):
        with RawClient(closing.cluster.bootstrap_servers, source_host=host) as stranger:
            (answered,) = stranger.ask(request, FetchResponse, 12).responses
        assert answered.partitions[0].error_code == expected
