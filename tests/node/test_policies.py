"""Policies of a running node: loaded, configured, asked, closed; and why a node does not start."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.raw_client import RawClient
from tests.support.topics import create_request

from kvorum.node.config import NodeConfig
from kvorum.node.controller.policies import load_policies
from kvorum.node.errors import NodeStartError
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import CreateTopicsResponse

StartCluster = Callable[..., Cluster]
MODULE = "kvorum_test_house_rules"
SOURCE = """
from kvorum.controller.policies import PolicyViolationError

told = []

class Prefix:
    def configure(self, configs):
        self.prefix = configs["house.prefix"]
        told.append("configured")
    def validate(self, request):
        if not request.topic.startswith(self.prefix):
            raise PolicyViolationError(f"a topic begins with {self.prefix}")
    def close(self):
        told.append("closed")
        raise OSError("too late")

class Anything:
    def validate(self, request):
        pass

class Mute:
    pass

class Broken:
    def __init__(self):
        raise ValueError("not today")

class Picky(Anything):
    def configure(self, configs):
        raise KeyError("house.prefix")
    def close(self):
        told.append("closed")

class Outer:
    class Inner(Anything):
        pass

not_a_class = 5
"""


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[str]]]:
    """The operator's module can be imported; what its policies noted."""
    (tmp_path / f"{MODULE}.py").write_text(SOURCE)
    (tmp_path / f"{MODULE}_broken.py").write_text("import no_such_module_of_anybody\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def notes() -> list[str]:
        noted: list[str] = sys.modules[MODULE].told
        return noted

    yield notes
    sys.modules.pop(MODULE, None)


def config(**policies: str) -> NodeConfig:
    names = {"topic": "create.topic.policy.class.name", "config": "alter.config.policy.class.name"}
    texts = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:9",
        "house.prefix": "house.",
        "log.dirs": "data",
    }
    return NodeConfig.from_properties(
        texts | {names[kind]: name for kind, name in policies.items()}
    )


def test_a_node_asks_its_policy_and_closes_it(
    kvorum_cluster_factory: StartCluster, told: Callable[[], list[str]]
) -> None:
    overrides = {"create.topic.policy.class.name": f"{MODULE}.Prefix", "house.prefix": "house."}
    cluster = kvorum_cluster_factory(overrides=overrides)
    with RawClient(cluster.bootstrap_servers) as client:
        response = client.ask(create_request(["house.cat", "street.cat"]), CreateTopicsResponse, 7)
    assert [(topic.error_code, topic.error_message) for topic in response.topics] == [
        (ErrorCode.NONE, None),
        (ErrorCode.POLICY_VIOLATION, "a topic begins with house."),
    ]
    cluster.stop()
    assert told() == ["configured", "closed"]


def test_both_ways_to_write_a_name(told: Callable[[], list[str]]) -> None:
    del told
    policies = load_policies(config(topic=f"{MODULE}:Outer.Inner", config=f"{MODULE}.Anything"))
    assert type(policies.create_topic).__name__ == "Inner"
    assert type(policies.alter_config).__name__ == "Anything"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Prefix", "'Prefix' names no Python class; write package.module.Class"),
        (f"{MODULE}_absent.Prefix", f"module {MODULE}_absent of {MODULE}_absent.Prefix cannot be"),
        (f"{MODULE}_broken.Prefix", "ModuleNotFoundError: No module named 'no_such_module"),
        (f"{MODULE}.Absent", f"module {MODULE} has no Absent"),
        (f"{MODULE}.not_a_class", f"{MODULE}.not_a_class is not a class"),
        (f"{MODULE}.Mute", f"{MODULE}.Mute has no method validate(request)"),
        (f"{MODULE}.Broken", f"{MODULE}.Broken() failed: ValueError: not today"),
        (f"{MODULE}.Picky", f"{MODULE}.Picky.configure failed: KeyError: 'house.prefix'"),
        ("org.apache.kafka.Some", "module org.apache.kafka of org.apache.kafka.Some cannot be"),
    ],
)
def test_a_policy_that_cannot_be_had_is_named(
    told: Callable[[], list[str]], name: str, reason: str
) -> None:
    del told
    with pytest.raises(NodeStartError) as raised:
        load_policies(config(config=name))
    assert str(raised.value).startswith("alter.config.policy.class.name: ")
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_policy_made_before_one_that_fails_is_closed(told: Callable[[], list[str]]) -> None:
    with pytest.raises(NodeStartError):
        load_policies(config(topic=f"{MODULE}.Prefix", config=f"{MODULE}.Picky"))
    assert told() == ["configured", "closed", "closed"]


def test_a_node_with_a_bad_policy_does_not_start(kvorum_cluster_factory: StartCluster) -> None:
    with pytest.raises(NodeStartError, match="module no_such_package of"):
        kvorum_cluster_factory(overrides={"create.topic.policy.class.name": "no_such_package.Rule"})
