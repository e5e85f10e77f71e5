"""Users who may do one thing each, and every request of a broker's listener, beside a real node.

Every user has logged in by SASL and has one entry, about all resources of one type. Requests that
the broker forwards are among them: the controller decides about these, for the user.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from tests.interop.asked_broker import INTERNAL_TOPICS, AskedBroker
from tests.interop.authorizer_lines import decisions_about
from tests.interop.broker_requests import (
    GROUP,
    SHARE_GROUP,
    TRANSACTIONAL_ID,
    bodies,
    with_another_partition,
)
from tests.interop.differential.bad_input_scripts import GOOD
from tests.interop.differential.comparing import differences
from tests.interop.differential.script import Body, message_of
from tests.interop.differential.security_scripts import ANYTHING
from tests.interop.listener_pairs import Sides, running_sides
from tests.interop.shared_records import LONG_TIMES
from tests.support.kafka.java import Java, ToolRunner
from tests.support.raw_client import RawClient
from tests.support.sasl_clients import log_in, plain_config
from tests.support.tls_nodes import Listeners
from tests.support.topics import WITH_AUTHORIZER
from tests.support.waiting import wait_for

from kvorum.metadata.acl_codes import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
)
from kvorum.metadata.authorizer_log import LOGGER_NAME
from kvorum.node.handlers.registry import broker_apis
from kvorum.wire.apis import API_SPECS, request_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import encode_request_frame
from kvorum.wire.json_form import Json
from kvorum.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kvorum.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from kvorum.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kvorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

pytestmark = pytest.mark.slow

TOPIC: Final = "limits"
UNKNOWN_TOPIC: Final = "nowhere"
LISTENER: Final = "OPEN"
PASSWORD: Final = "secret"
UNKNOWN_SECRET: Final = "c2FsdHNhbHRzYWx0c2FsdA=="
TIMEOUT_MS: Final = 5_000
CONSUMER_GROUP: Final = "limits-consumers"
"""A group of the consumer protocol whose only member has the topic's partition."""
CONSUMER: Final = {"groupId": CONSUMER_GROUP, "memberId": "m", "subscribedTopicNames": [TOPIC]}
SESSION_MS: Final = 3_600_000
"""Members that are silent stay as long as the users ask."""
KNOWN_TRANSACTIONAL_ID: Final = "known"
"""A transactional id with a producer, and without a transaction."""
OWNER: Final = "owner"
"""The owner of a delegation token that another user has asked for."""
OPERATIONS: Final[Mapping[AclResourceType, tuple[AclOperation, ...]]] = {
    **SUPPORTED_OPERATIONS,
    AclResourceType.CLUSTER: (
        AclOperation.ALL,
        *SUPPORTED_OPERATIONS[AclResourceType.CLUSTER],
    ),
    AclResourceType.TRANSACTIONAL_ID: (
        AclOperation.DESCRIBE,
        AclOperation.WRITE,
        AclOperation.TWO_PHASE_COMMIT,
    ),
    AclResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    AclResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}


class Permission(NamedTuple):
    """Something that a user may do with all resources of a type."""

    kind: AclResourceType
    operation: AclOperation


def _single(kind: AclResourceType, operation: AclOperation) -> tuple[str, tuple[Permission, ...]]:
    return f"{kind.name}_{operation.name}".lower(), (Permission(kind, operation),)


USERS: Final[Mapping[str, tuple[Permission, ...]]] = {
    "nobody": (),
    **dict(
        _single(kind, operation)
        for kind, operations in OPERATIONS.items()
        for operation in operations
    ),
    "creator": (
        Permission(AclResourceType.TOPIC, AclOperation.DESCRIBE),
        Permission(AclResourceType.TOPIC, AclOperation.CREATE),
    ),
    "consumer": (
        Permission(AclResourceType.TOPIC, AclOperation.READ),
        Permission(AclResourceType.GROUP, AclOperation.READ),
    ),
    "transactional_producer": (
        Permission(AclResourceType.TOPIC, AclOperation.WRITE),
        Permission(AclResourceType.TRANSACTIONAL_ID, AclOperation.WRITE),
    ),
    "transactional_consumer": (
        Permission(AclResourceType.TOPIC, AclOperation.READ),
        Permission(AclResourceType.GROUP, AclOperation.READ),
        Permission(AclResourceType.TRANSACTIONAL_ID, AclOperation.WRITE),
    ),
}
OWN: Final = frozenset(
    {"producerId", "logAppendTimeMs", "sessionId", "logDir", "totalBytes", "usableBytes"}
    | {"partitionSize", "port", "lastTimestamp", "throttleTimeMs", "transactionStartTimeMs"}
    | {"tokenId", "hmac", "configs", "incarnationId", "issueTimestampMs", "expiryTimestampMs"}
    | {"maxTimestampMs", "issueTimestamp", "expiryTimestamp", "maxTimestamp"}
    | {"lastFetchTimestamp", "lastCaughtUpTimestamp", "logEndOffset", "highWatermark"}
    | {"isCordoned", "memberId", "topicId", "replicaDirectoryId"}
)
"""Values that each node draws, stamps, or has of its own."""
RESOURCES: Final = (
    *((2, TOPIC), (2, UNKNOWN_TOPIC), (16, "m"), (32, GROUP)),
    *((kind, name) for kind in (4, 8) for name in ("", "1", "7")),
)


class Request(NamedTuple):
    """A request: its API, its body by Kafka's JSON names, and its version if it is not the last."""

    api: str
    body: Body
    version: int | None = None


def requests(*, topic_id: str, shared_topic_id: str) -> dict[str, Request]:
    """Return every request by a name; those that would change what others ask change nothing."""
    named = [{"name": TOPIC}, {"name": UNKNOWN_TOPIC}]
    made = bodies(TOPIC, topic_id=topic_id, shared_topic_id=shared_topic_id)
    good = {name: Request(name, body) for name, body in made.items()}
    fetched = good["Fetch"].body
    producer: Mapping[str, Any] = {
        "transactionalId": TRANSACTIONAL_ID,
        "producerId": 5,
        "producerEpoch": 0,
    }
    configs = {"name": "retention.ms", "value": "60000"}
    resources: list[dict[str, Any]] = [
        {"resourceType": kind, "resourceName": name, "configs": []} for kind, name in RESOURCES
    ]
    with_key_twice = [{**each, "configs": [configs, configs]} for each in resources]
    more = {
        "Fetch of a follower": Request(
            "Fetch", {**fetched, "replicaState": {"replicaId": 9, "replicaEpoch": -1}}
        ),
        "Fetch of an unknown topic": Request(
            "Fetch",
            {**fetched, "topics": [{"topic": UNKNOWN_TOPIC, "partitions": [{"partition": 0}]}]},
            12,
        ),
        "Produce in a transaction": Request(
            "Produce", {**good["Produce"].body, "transactionalId": TRANSACTIONAL_ID}
        ),
        "Produce to an unknown topic": Request(
            "Produce",
            {
                **good["Produce"].body,
                "topicData": [{**good["Produce"].body["topicData"][0], "name": UNKNOWN_TOPIC}],
            },
            12,
        ),
        "Metadata of all": Request(
            "Metadata", {"topics": None, "includeTopicAuthorizedOperations": True}
        ),
        "Metadata of topics": Request(
            "Metadata",
            {
                "topics": [{**each, "topicId": "AAAAAAAAAAAAAAAAAAAAAA"} for each in named],
                "allowAutoTopicCreation": False,
                "includeTopicAuthorizedOperations": True,
            },
        ),
        "Metadata of a topic id": Request(
            "Metadata", {"topics": [{"topicId": topic_id, "name": None}]}
        ),
        "Metadata with the cluster's operations": Request(
            "Metadata", {"topics": [], "includeClusterAuthorizedOperations": True}, 8
        ),
        "Metadata that creates": Request(
            "Metadata", {"topics": [{"name": "no name"}], "allowAutoTopicCreation": True}, 9
        ),
        "DescribeGroups with operations": Request(
            "DescribeGroups", {"groups": [GROUP], "includeAuthorizedOperations": True}
        ),
        "FindCoordinator of a share partition": Request(
            "FindCoordinator", {"keyType": 2, "coordinatorKeys": [f"{SHARE_GROUP}:{topic_id}:0"]}
        ),
        "FindCoordinator of an id": Request(
            "FindCoordinator", {"keyType": 1, "coordinatorKeys": [TRANSACTIONAL_ID]}
        ),
        "InitProducerId of a transaction": Request(
            "InitProducerId",
            {
                **good["InitProducerId"].body,
                "transactionalId": KNOWN_TRANSACTIONAL_ID,
                "transactionTimeoutMs": 1000,
            },
        ),
        "AddPartitionsToTxn of a client": Request(
            "AddPartitionsToTxn", good["AddPartitionsToTxn"].body, 3
        ),
        "TxnOffsetCommit": Request(
            "TxnOffsetCommit",
            {
                **producer,
                "groupId": GROUP,
                "generationIdOrMemberEpoch": -1,
                "memberId": "",
                "topics": [
                    {"name": name, "partitions": [{"partitionIndex": 0, "committedOffset": 3}]}
                    for name in (TOPIC, UNKNOWN_TOPIC)
                ],
            },
        ),
        "OffsetFetch of all": Request(
            "OffsetFetch", {"groups": [{"groupId": GROUP, "topics": None, "memberEpoch": -1}]}
        ),
        "CreateTopics": Request(
            "CreateTopics",
            {
                "topics": [
                    {"name": name, "numPartitions": 1, "replicationFactor": 1}
                    for name in ("new", TOPIC)
                ],
                "timeoutMs": TIMEOUT_MS,
                "validateOnly": True,
            },
        ),
        "DeleteTopics": Request(
            "DeleteTopics",
            {
                "topics": [
                    {"name": UNKNOWN_TOPIC, "topicId": "AAAAAAAAAAAAAAAAAAAAAA"},
                    {"name": None, "topicId": "AAAAAAAAAAAAAAAAAAAACQ"},
                ],
                "timeoutMs": TIMEOUT_MS,
            },
        ),
        "CreatePartitions": Request(
            "CreatePartitions",
            {
                "topics": [
                    {"name": name, "count": 9, "assignments": None}
                    for name in (TOPIC, UNKNOWN_TOPIC)
                ],
                "timeoutMs": TIMEOUT_MS,
                "validateOnly": True,
            },
        ),
        **{
            api: Request(api, {"resources": resources, "validateOnly": True})
            for api in ("AlterConfigs", "IncrementalAlterConfigs")
        },
        **{
            f"{api} with a key twice": Request(
                api, {"resources": with_key_twice, "validateOnly": True}
            )
            for api in ("AlterConfigs", "IncrementalAlterConfigs")
        },
        "DescribeConfigs": Request(
            "DescribeConfigs",
            {
                "resources": [
                    {"resourceType": kind, "resourceName": name, "configurationKeys": []}
                    for kind, name in RESOURCES
                ]
            },
        ),
        "ElectLeaders": Request(
            "ElectLeaders",
            {
                "topicPartitions": [{"topic": TOPIC, "partitions": [0]}],
                "timeoutMs": TIMEOUT_MS,
            },
        ),
        "AlterPartitionReassignments": Request(
            "AlterPartitionReassignments",
            {
                "timeoutMs": TIMEOUT_MS,
                "topics": [{"name": TOPIC, "partitions": [{"partitionIndex": 0, "replicas": [9]}]}],
            },
        ),
        "ListPartitionReassignments": Request("ListPartitionReassignments", {"topics": None}),
        "AlterClientQuotas": Request(
            "AlterClientQuotas",
            {
                "entries": [
                    {
                        "entity": [{"entityType": "user", "entityName": "u"}],
                        "ops": [{"key": "producer_byte_rate", "value": 1000.0, "remove": False}],
                    }
                ],
                "validateOnly": True,
            },
        ),
        "DescribeClientQuotas": Request("DescribeClientQuotas", {"components": []}),
        "AlterUserScramCredentials": Request(
            "AlterUserScramCredentials", {"deletions": [{"name": "gone", "mechanism": 1}]}
        ),
        "DescribeUserScramCredentials": Request(
            "DescribeUserScramCredentials", {"users": [{"name": "known"}]}
        ),
        "UpdateFeatures": Request(
            "UpdateFeatures",
            {
                "timeoutMs": TIMEOUT_MS,
                "featureUpdates": [
                    {"feature": "metadata.version", "maxVersionLevel": 1, "upgradeType": 1}
                ],
                "validateOnly": True,
            },
        ),
        "DescribeCluster": Request("DescribeCluster", {"includeClusterAuthorizedOperations": True}),
        "UnregisterBroker": Request("UnregisterBroker", {"brokerId": 77}),
        "UnregisterController": Request("UnregisterController", {"controllerId": 77}),
        "CreateDelegationToken": Request("CreateDelegationToken", {"maxLifetimeMs": 60_000}),
        "CreateDelegationToken for another": Request(
            "CreateDelegationToken",
            {
                "ownerPrincipalType": "User",
                "ownerPrincipalName": "other",
                "maxLifetimeMs": 60_000,
            },
        ),
        "RenewDelegationToken": Request("RenewDelegationToken", {"hmac": UNKNOWN_SECRET}),
        "ExpireDelegationToken": Request("ExpireDelegationToken", {"hmac": UNKNOWN_SECRET}),
        "DescribeDelegationToken": Request(
            "DescribeDelegationToken",
            {"owners": [{"principalType": "User", "principalName": OWNER}]},
        ),
        "CreateAcls": Request("CreateAcls", GOOD["CreateAcls"]),
        "DescribeAcls": Request("DescribeAcls", {**ANYTHING, "principalFilter": "User:nobody"}),
        "DeleteAcls": Request(
            "DeleteAcls", {"filters": [{**ANYTHING, "principalFilter": "User:nobody"}]}
        ),
        "DescribeQuorum": Request(
            "DescribeQuorum",
            {
                "topics": [
                    {"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}
                ]
            },
        ),
        "ConsumerGroupHeartbeat": Request(
            "ConsumerGroupHeartbeat", {"groupId": "new", "subscribedTopicNames": [TOPIC]}
        ),
        "ConsumerGroupHeartbeat of a member": Request(
            "ConsumerGroupHeartbeat", {**CONSUMER, "memberEpoch": 2}
        ),
        "ConsumerGroupHeartbeat of a member to an unknown topic": Request(
            "ConsumerGroupHeartbeat",
            {**CONSUMER, "memberEpoch": 7, "subscribedTopicNames": [TOPIC, UNKNOWN_TOPIC]},
        ),
        "ConsumerGroupDescribe of members": Request(
            "ConsumerGroupDescribe",
            {"groupIds": [CONSUMER_GROUP, GROUP], "includeAuthorizedOperations": True},
        ),
        "ListConfigResources": Request("ListConfigResources", {}),
        "DescribeTopicPartitions": Request("DescribeTopicPartitions", {"topics": named}),
        "AddRaftVoter": Request("AddRaftVoter", {"voterId": 77}),
        "RemoveRaftVoter": Request("RemoveRaftVoter", {"voterId": 77}),
        "ApiVersions": Request("ApiVersions", {"clientSoftwareName": "-"}),
        "SaslHandshake": Request("SaslHandshake", {"mechanism": "PLAIN"}),
    }
    of_two_partitions = {
        f"{name} of two partitions": Request(name, with_another_partition(good[name].body))
        for name in (
            *("Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch", "DeleteRecords"),
            *("DescribeProducers", "OffsetCommit", "OffsetFetch", "OffsetDelete"),
            *("ShareFetch", "ShareAcknowledge"),
        )
    }
    of_two_partitions["AddPartitionsToTxn of two partitions"] = Request(
        "AddPartitionsToTxn", with_another_partition(good["AddPartitionsToTxn"].body), 3
    )
    return {**good, **more, **of_two_partitions}


NAMES: Final = tuple(requests(topic_id="", shared_topic_id=""))
FOR_EVERYBODY: Final = frozenset(
    {"ApiVersions", "SaslHandshake"}
    | {"AlterConfigs with a key twice", "IncrementalAlterConfigs with a key twice"}
    | {"RenewDelegationToken", "ExpireDelegationToken"}
)
"""Requests that need no permission, are refused before one is asked for, or find nothing."""
KEYS: Final = {spec.name: key for key, spec in API_SPECS.items()}


class Asked(NamedTuple):
    """A node's answer, and what its authorizer has logged of the decisions for it."""

    answer: Json
    decisions: Counter[str]


class Side(NamedTuple):
    """A node, the port on which its users log in, and its log."""

    broker: AskedBroker
    port: int
    log: Path

    def ask(self, user: str, request: Request) -> Asked:
        """Return the answer to a user, and the decisions about it."""
        start = self.log.stat().st_size
        answer = self.answer(user, request)
        return Asked(answer, decisions_about(user, self.log, start))

    def request(self, name: str) -> Request:
        """Return a request by its name, with the ids of the node's topics."""
        made = requests(topic_id=self.broker.topic_id, shared_topic_id=self.broker.shared_topic_id)
        return made[name]

    def log_all_decisions(self) -> None:
        """Have the real node log permissions, too: by the level of its logger."""
        change = {"name": LOGGER_NAME, "configOperation": 0, "value": "DEBUG"}
        loggers = {"resourceType": 8, "resourceName": "1", "configs": [change]}
        message = message_of(IncrementalAlterConfigsRequest, {"resources": [loggers]}, 1)
        with RawClient(self.broker.address) as client:
            response = client.ask(message, IncrementalAlterConfigsResponse, 1)
        assert [each.error_code for each in response.responses] == [ErrorCode.NONE]

    def allow(self) -> None:
        """Give every user the entries, and wait until the broker knows them."""
        names = {AclResourceType.CLUSTER: CLUSTER_NAME}
        creations = [
            {
                "resourceType": permission.kind.value,
                "resourceName": names.get(permission.kind, WILDCARD),
                "resourcePatternType": PatternType.LITERAL.value,
                "principal": f"User:{user}",
                "host": WILDCARD,
                "operation": permission.operation.value,
                "permissionType": PermissionType.ALLOW.value,
            }
            for user, permissions in USERS.items()
            for permission in permissions
        ]
        entries = message_of(CreateAclsRequest, {"creations": creations}, 3)
        everything = message_of(DescribeAclsRequest, ANYTHING, 3)
        with RawClient(self.broker.address) as client:
            created = client.ask(entries, CreateAclsResponse, 3)
            assert {result.error_code for result in created.results} == {ErrorCode.NONE}

            def known() -> int:
                found = client.ask(everything, DescribeAclsResponse, 3)
                return sum(len(resource.acls) for resource in found.resources)

            wait_for(lambda: known() == len(creations) or None, "the broker knows the entries")

    def join_consumer_group(self) -> None:
        """Have a member join, which gets the topic's partition."""
        join = message_of(
            ConsumerGroupHeartbeatRequest,
            {**CONSUMER, "rebalanceTimeoutMs": SESSION_MS, "topicPartitions": []},
            1,
        )
        with RawClient(self.broker.address) as client:
            joined = client.ask(join, ConsumerGroupHeartbeatResponse, 1)
        assert (joined.error_code, joined.member_epoch) == (ErrorCode.NONE, 2), joined

    def make_transactional_id(self) -> None:
        """Have the coordinator know a transactional id, which some users may list."""
        request = InitProducerIdRequest(KNOWN_TRANSACTIONAL_ID, TIMEOUT_MS)
        with RawClient(self.broker.address) as client:
            made = client.ask(request, InitProducerIdResponse, 4)
        assert made.error_code == ErrorCode.NONE, made

    def make_token(self) -> None:
        """Make a token for its owner, and wait until the broker knows it."""
        owner = {"ownerPrincipalType": "User", "ownerPrincipalName": OWNER}
        self.answer("user_create_tokens", Request("CreateDelegationToken", owner))

        def found() -> bool:
            described = self.answer(
                "delegation_token_describe", Request("DescribeDelegationToken", {"owners": None})
            )
            return "tokenId" in str(described)

        wait_for(lambda: found() or None, "the broker knows the token")

    def answer(self, user: str, request: Request) -> Json:
        key = KEYS[request.api]
        version = broker_apis()[key].max_version if request.version is None else request.version
        message = message_of(request_class(key), request.body, version)
        frame = encode_request_frame(message, version=version, correlation_id=1, client_id="raw")
        with RawClient(f"127.0.0.1:{self.port}") as client:
            assert log_in(client, user, PASSWORD).error_code == ErrorCode.NONE
            return self.broker.said_on(client, frame, key, version, own=OWN)


def settings(listeners: Listeners) -> dict[str, str]:
    return {
        **listeners.settings(),
        **WITH_AUTHORIZER,
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "false",
        "listener.name.open.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.open.plain.sasl.jaas.config": plain_config(**dict.fromkeys(USERS, PASSWORD)),
        "delegation.token.secret.key": "secret of the nodes",
        "auto.create.topics.enable": "true",
        **INTERNAL_TOPICS,
        **LONG_TIMES,
        "group.consumer.session.timeout.ms": str(SESSION_MS),
        "group.consumer.max.session.timeout.ms": str(SESSION_MS),
        "transaction.partition.verification.enable": "false",
        "log.retention.ms": "-1",
        "kvorum.log.level": "debug",
    }


@pytest.fixture(scope="module")
def sides(
    java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Side, Side]]:
    """The real node and ours, whose brokers know what each user may do."""
    protocols = {LISTENER: "SASL_PLAINTEXT"}
    listeners = Sides(Listeners((LISTENER,), protocols), Listeners((LISTENER,), protocols))
    folder = tmp_path_factory.mktemp("nodes")
    with running_sides(listeners, folder, settings, java=java, tools=kafka_tools):
        real, ours = (
            Side(
                AskedBroker(f"127.0.0.1:{each.ports['PLAINTEXT']}", TOPIC),
                each.ports[LISTENER],
                folder / name / "output.txt",
            )
            for each, name in zip(listeners, ("real", "ours"), strict=True)
        )
        for side in (real, ours):
            side.allow()
            side.make_transactional_id()
            side.make_token()
            side.join_consumer_group()
        real.log_all_decisions()
        with closing(real.broker), closing(ours.broker):
            yield real, ours


@pytest.mark.parametrize("name", NAMES)
def test_each_user_is_answered_as_by_kafka(sides: tuple[Side, Side], name: str) -> None:
    theirs, ours = ({user: side.ask(user, side.request(name)) for user in USERS} for side in sides)
    differing = [
        f"{user}{difference}"
        for user, asked in theirs.items()
        for difference in differences(asked.answer, ours[user].answer, "")
    ]
    for user, asked in theirs.items():
        differing += [f"only Kafka: {line}" for line in asked.decisions - ours[user].decisions]
        differing += [f"only ours: {line}" for line in ours[user].decisions - asked.decisions]
    assert not differing, "\n".join(differing)
    answers = {str(asked.answer) for asked in theirs.values()}
    assert (len(answers) == 1) == (name in FOR_EVERYBODY)


def test_every_request_of_a_broker_is_asked() -> None:
    asked = {request.api for request in requests(topic_id="", shared_topic_id="").values()}
    served = {API_SPECS[key].name for key in broker_apis()}
    assert served - asked == {"SaslAuthenticate"}
