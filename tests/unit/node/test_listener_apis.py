"""Every API on every listener: what it needs, and how the whole of it is refused."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final, cast

import pytest
from tests.support.random_messages import fields_with_classes
from tests.support.source_tree import python_files

from kvorum.controller.api import ControllerApi
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import (
    BY_CONTROLLER,
    BY_HANDLER,
    NONE,
    PER_RESOURCE,
    NoClusterPermission,
    Permission,
    RequestError,
    find_apis,
)
from kvorum.metadata.standard_authorizer import ANONYMOUS, AuthorizerRules, Principal
from kvorum.node.authorization import Authorizer
from kvorum.node.handlers.registry import broker_apis, controller_apis, forwardable_keys
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.raft import RaftNode
from kvorum.node.services import BrokerApi
from kvorum.node.serving.request_handler import ServedApi
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import response_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse
from kvorum.wire.primitives import Message, Struct

ERROR: Final = RequestError(ErrorCode.NOT_CONTROLLER, "why")
SHOWN: Final = {"string": "a", "bytes": b"a", "uuid": bytes(15) + b"a", "records": b""}
LACKS_A_PLACE: Final = {
    (ApiKey.DESCRIBE_LOG_DIRS, version): "an error of the whole came with version 3"
    for version in (1, 2)
}
"""The forms in which a refusal cannot say why; Kafka sends them empty as well."""
Served = ServedApi[Any]  # the services are not looked at here
SERVED: Final = [
    pytest.param(api, version, id=f"{listener}-{api.key.name}-{version}")
    for listener, apis in (("broker", broker_apis()), ("controller", controller_apis()))
    for api in apis.values()
    for version in range(api.min_version, api.max_version + 1)
]
RULES = AuthorizerRules(frozenset({"User:root"}), allows_without_entries=True)


def by_api(names: dict[Permission, str]) -> dict[ApiKey, Permission]:
    """Return the need of each API, out of the names of those that need the same."""
    return {ApiKey[name]: need for need, text in names.items() for name in text.split()}


ACTION, ALTER, DESCRIBE = AclOperation.CLUSTER_ACTION, AclOperation.ALTER, AclOperation.DESCRIBE


# On a controller's listeners, by hand out of Kafka's ControllerApis; ALTER for DescribeCluster is
# asked for only after the metadata.version was looked at.
ON_CONTROLLER: Final = by_api(
    {
        ACTION: (
            "FETCH VOTE BEGIN_QUORUM_EPOCH END_QUORUM_EPOCH ALTER_PARTITION ENVELOPE "
            "FETCH_SNAPSHOT BROKER_REGISTRATION BROKER_HEARTBEAT ALLOCATE_PRODUCER_IDS "
            "CONTROLLER_REGISTRATION ASSIGN_REPLICAS_TO_DIRS UPDATE_RAFT_VOTER"
        ),
        NONE: "SASL_HANDSHAKE API_VERSIONS SASL_AUTHENTICATE",
        PER_RESOURCE: (
            "CREATE_TOPICS DELETE_TOPICS DESCRIBE_CONFIGS ALTER_CONFIGS CREATE_PARTITIONS "
            "CREATE_DELEGATION_TOKEN RENEW_DELEGATION_TOKEN EXPIRE_DELEGATION_TOKEN "
            "DESCRIBE_DELEGATION_TOKEN INCREMENTAL_ALTER_CONFIGS"
        ),
        DESCRIBE: (
            "DESCRIBE_ACLS LIST_PARTITION_REASSIGNMENTS DESCRIBE_USER_SCRAM_CREDENTIALS "
            "DESCRIBE_QUORUM"
        ),
        ALTER: (
            "CREATE_ACLS DELETE_ACLS ELECT_LEADERS ALTER_PARTITION_REASSIGNMENTS "
            "ALTER_USER_SCRAM_CREDENTIALS UPDATE_FEATURES UNREGISTER_BROKER "
            "UNREGISTER_CONTROLLER ADD_RAFT_VOTER REMOVE_RAFT_VOTER"
        ),
        AclOperation.ALTER_CONFIGS: "ALTER_CLIENT_QUOTAS",
        BY_HANDLER: "DESCRIBE_CLUSTER",
    }
)


# The broker's own; what it forwards as it came is for the controller to look at.
ON_BROKER: Final = by_api(
    {
        PER_RESOURCE: (
            "PRODUCE FETCH LIST_OFFSETS METADATA OFFSET_COMMIT OFFSET_FETCH FIND_COORDINATOR "
            "JOIN_GROUP HEARTBEAT LEAVE_GROUP SYNC_GROUP DESCRIBE_GROUPS LIST_GROUPS "
            "DELETE_GROUPS OFFSET_DELETE DELETE_RECORDS TXN_OFFSET_COMMIT "
            "OFFSET_FOR_LEADER_EPOCH DESCRIBE_PRODUCERS DESCRIBE_CONFIGS ALTER_CONFIGS "
            "CREATE_DELEGATION_TOKEN RENEW_DELEGATION_TOKEN EXPIRE_DELEGATION_TOKEN "
            "DESCRIBE_DELEGATION_TOKEN INCREMENTAL_ALTER_CONFIGS LIST_TRANSACTIONS "
            "ADD_OFFSETS_TO_TXN END_TXN DESCRIBE_TRANSACTIONS "
            "DESCRIBE_TOPIC_PARTITIONS CONSUMER_GROUP_HEARTBEAT CONSUMER_GROUP_DESCRIBE "
            "SHARE_GROUP_HEARTBEAT SHARE_GROUP_DESCRIBE SHARE_FETCH SHARE_ACKNOWLEDGE "
            "DESCRIBE_SHARE_GROUP_OFFSETS ALTER_SHARE_GROUP_OFFSETS DELETE_SHARE_GROUP_OFFSETS"
        ),
        NONE: "SASL_HANDSHAKE API_VERSIONS SASL_AUTHENTICATE DESCRIBE_CLUSTER",
        BY_HANDLER: "INIT_PRODUCER_ID ADD_PARTITIONS_TO_TXN WRITE_TXN_MARKERS",
        DESCRIBE: "DESCRIBE_ACLS DESCRIBE_LOG_DIRS DESCRIBE_USER_SCRAM_CREDENTIALS",
        ALTER: "ALTER_REPLICA_LOG_DIRS",
        ACTION: (
            "INITIALIZE_SHARE_GROUP_STATE READ_SHARE_GROUP_STATE WRITE_SHARE_GROUP_STATE "
            "DELETE_SHARE_GROUP_STATE READ_SHARE_GROUP_STATE_SUMMARY"
        ),
        AclOperation.DESCRIBE_CONFIGS: "DESCRIBE_CLIENT_QUOTAS LIST_CONFIG_RESOURCES",
    }
)


def asking_for_something(kind: type[Struct], version: int) -> Struct:
    """Return a request that names one of everything, so that there is something to refuse."""
    made = kind()
    for field, inner in fields_with_classes(kind.__module__, kind.__name__):
        if not field.is_in(version):
            continue
        name = field.kind.removeprefix("[]")
        one = SHOWN.get(name, 1) if inner is None else asking_for_something(inner, version)
        setattr(made, field.attribute, [one] if field.kind.startswith("[]") else one)
    return made


def codes_in(value: Struct) -> Iterator[int]:
    """Yield every error code of a message, at whatever depth."""
    for field, _ in fields_with_classes(type(value).__module__, type(value).__name__):
        own: object = getattr(value, field.attribute)
        if field.attribute.endswith("error_code") and isinstance(own, int):
            yield own
        for inner in cast("list[object]", own) if isinstance(own, list) else [own]:
            if isinstance(inner, Struct):
                yield from codes_in(inner)


def refused(api: Served, version: int) -> Message:
    value = api.load()
    request = asking_for_something(value.request, version)
    assert isinstance(request, Message)
    request = value.request.decode(request.encode(version), version)
    refusal = value.refuse(request, ERROR, version)
    assert type(refusal) is response_class(api.key)
    return type(refusal).decode(refusal.encode(version), version)


@pytest.mark.parametrize(("api", "version"), SERVED)
def test_a_whole_request_can_be_refused_in_every_version(api: Served, version: int) -> None:
    codes = list(codes_in(refused(api, version)))
    if (api.key, version) in LACKS_A_PLACE:
        assert ERROR.code not in codes, "it has a place after all"
    else:
        assert ERROR.code in codes


def test_what_a_controller_demands_is_what_kafka_demands() -> None:
    assert {api.key: api.load().permission for api in controller_apis().values()} == ON_CONTROLLER


def test_what_a_broker_demands_is_what_kafka_demands() -> None:
    found = {api.key: api.load().permission for api in broker_apis().values()}
    forwarded = {key for key, permission in found.items() if permission is BY_CONTROLLER}
    assert {key: found[key] for key in found.keys() - forwarded} == ON_BROKER
    assert forwarded <= forwardable_keys()
    assert forwarded <= ON_CONTROLLER.keys()


def test_a_forgotten_permission_is_an_error_at_import() -> None:
    facts: dict[str, Any] = {"request": MetadataRequest, "answer": None, "refuse": None}
    with pytest.raises(TypeError, match="permission"):
        BrokerApi[MetadataRequest](**facts)
    facts |= {"decide": None}
    del facts["answer"]
    with pytest.raises(TypeError, match="permission"):
        ControllerApi[MetadataRequest, MetadataResponse](**facts)


def test_each_reason_to_need_nothing_is_given_somewhere() -> None:
    assert set(NoClusterPermission) <= {*ON_BROKER.values(), *ON_CONTROLLER.values(), BY_CONTROLLER}


def package(folder: Path, **modules: str) -> ModuleType:
    """Return a package with these modules, which can be imported."""
    made = folder / "found"
    made.mkdir()
    (made / "__init__.py").write_text("")
    for name, text in modules.items():
        (made / f"{name}.py").write_text(text)
    module = ModuleType("found")
    module.__path__ = [str(made)]
    return module


def test_modules_that_are_named_after_an_api_are_found_and_not_imported(tmp_path: Path) -> None:
    found = find_apis(package(tmp_path, create_topics="1 / 0", helper="1 / 0"), BrokerApi[Message])
    assert list(found) == [ApiKey.CREATE_TOPICS]


@pytest.mark.parametrize("text", ["", "from kvorum.node.handlers.metadata import API"])
def test_a_module_without_the_value_of_its_api_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    kind: type[BrokerApi[Message]] = BrokerApi
    load = find_apis(package(tmp_path, create_topics=text), kind)[ApiKey.CREATE_TOPICS]
    with pytest.raises(TypeError, match=r"found\.create_topics needs one BrokerApi"):
        load()


def test_no_module_is_named_in_a_string() -> None:
    expected = {
        "cli/__init__.py": "one module for each command, and only that of the command is imported",
        "cli/dump/decoders.py": "the user's decoders, named on the command line",
        "metadata/api.py": "modules that the listing of a package found",
        "node/controller/policies.py": "the operator's policies, named in the properties file",
        "log_files/file_systems.py": "fsspec, which is optional and has no type hints",
    }
    found = {
        file.name.partition("/kvorum/")[2]
        for file in python_files("server", "spark")
        for node in file.nodes
        if isinstance(node, ast.Attribute | ast.Name)
        and ast.unparse(node) in {"importlib.import_module", "import_module", "__import__"}
    }
    assert found == expected.keys()


def test_until_the_log_is_read_only_super_users_are_let_in() -> None:
    raft = SimpleNamespace(high_watermark=None)
    loader = MetadataLoader()
    authorizer = Authorizer(RULES, loader=loader, raft=cast("RaftNode", raft))

    def is_let_in(principal: Principal) -> bool:
        access = authorizer.access(principal, "10.0.0.1")
        return access.allows_on_cluster(AclOperation.CLUSTER_ACTION)

    for end_offset, published_offset in ((None, -1), (5, -1), (5, 3)):
        raft.high_watermark, loader.published_offset = end_offset, published_offset
        assert is_let_in(Principal("User", "root"))
        with pytest.raises(RequestError) as caught:
            is_let_in(ANONYMOUS)
        assert caught.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
    loader.published_offset = 4
    assert is_let_in(ANONYMOUS)
    # Later commits reach the entries a moment later, as everything published does.
    raft.high_watermark = 9
    assert is_let_in(ANONYMOUS)


def test_without_rules_no_request_waits() -> None:
    raft = cast("RaftNode", SimpleNamespace(high_watermark=None))
    authorizer = Authorizer(None, loader=MetadataLoader(), raft=raft)
    assert not authorizer.access(ANONYMOUS, "10.0.0.1").is_restricted
