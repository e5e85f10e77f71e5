"""Starts that cannot succeed: one clear line, an exit code, and nothing changed on disk."""

import re
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.process.failed_nodes import assert_one_line, refused
from tests.support.node import OTHER_CLUSTER_ID, Node
from tests.support.node_process import kvorum_server
from tests.support.topics import create, read_topics

from kvorum.wire.error_codes import ErrorCode

META = "meta.properties"


def change(file: Path, **changes: str) -> None:
    """Put other values into a properties file; ``_`` in a key stands for a dot."""
    text = file.read_text()
    for key, value in changes.items():
        pattern = rf"(?m)^{re.escape(key.replace('_', '.'))}=.*$"
        text, count = re.subn(pattern, f"{key.replace('_', '.')}={value}", text)
        assert count == 1
    file.write_text(text)


def test_a_port_that_is_taken(node: Node) -> None:
    for port, name in ((node.broker_port, "PLAINTEXT"), (node.controller_port, "CONTROLLER")):
        with socket.create_server(("127.0.0.1", port)):
            line = refused(node)
        assert f"{name}://127.0.0.1:{port}" in line
        assert "is taken by another process" in line
    with node.process:
        assert create(node.broker, "then-it-works") == [ErrorCode.NONE]


def test_a_directory_that_was_never_formatted(node: Node) -> None:
    (node.data / META).unlink()
    line = refused(node)
    assert str(node.data) in line
    assert "kvorum storage format" in line


def test_a_directory_that_does_not_exist(node: Node) -> None:
    elsewhere = node.folder / "nowhere"
    node.configure({"log.dirs": str(elsewhere)})
    assert str(elsewhere) in refused(node)
    assert not elsewhere.exists()


def test_the_directory_of_another_node(node: Node) -> None:
    node.configure({"node.id": "7"})
    line = refused(node)
    assert "7" in line
    assert "node id" in line


def test_directories_of_two_clusters(node: Node, tmp_path: Path) -> None:
    other = Node(tmp_path / "other").format(cluster_id=OTHER_CLUSTER_ID)
    directories = f"{node.data},{other.data}"
    node.configure({"log.dirs": directories, "metadata.log.dir": str(node.data)})
    line = refused(node)
    assert "cluster.id" in line
    assert str(other.data) in line


def test_a_directory_that_a_running_node_uses(node: Node) -> None:
    with node.process:
        assert create(node.broker, "before") == [ErrorCode.NONE]
        addresses = "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"
        node.configure({"listeners": addresses})
        ended = kvorum_server(node.properties).run_to_end()
        assert_one_line(ended)
        assert f"in {node.data}" in ended.last_line
        assert "lock" in ended.last_line
        assert create(node.broker, "after") == [ErrorCode.NONE]
        assert read_topics(node.broker).keys() == {"before", "after"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "node ID not found"),
        ("version=7\n", "version"),
        ("version=1\nnode.id=1\n", "cluster"),
        ("version=1\nnode.id=one\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n", "node.id"),
        ("\0\xff\x80 no properties at all \\u12", "meta.properties"),
    ],
)
def test_damaged_identity(node: Node, text: str, words: str) -> None:
    (node.data / META).write_text(text, encoding="latin-1")
    line = refused(node)
    assert words in line
    assert str(node.data) in line


@pytest.mark.parametrize("text", ["", "{", '{"data_version": 9}', '{"leaderEpoch": "x"}', "\xff"])
def test_a_damaged_record_of_elections(node: Node, text: str) -> None:
    with node.process as process:
        process.terminate()
    election = node.metadata_log / "quorum-state"
    election.write_text(text, encoding="latin-1")
    assert str(election) in refused(node)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"node.id": "one"}, "one"),
        ({"node.id": "-1"}, "node.id"),
        ({"process.roles": "broker,observer"}, "process.roles"),
        ({"listeners": "PLAINTEXT://127.0.0.1"}, "PLAINTEXT://127.0.0.1"),
        ({"listeners": "PLAINTEXT://:70000,CONTROLLER://:0"}, "70000"),
        ({"controller.listener.names": "NOBODY"}, "CONTROLLER"),
        ({"broker.session.timeout.ms": "9s"}, "9s"),
        ({"metadata.log.segment.bytes": "0"}, "metadata.log.segment.bytes"),
        ({"log.dirs": ""}, "log.dirs"),
        ({"controller.quorum.bootstrap.servers": "nowhere"}, "nowhere"),
        ({"controller.quorum.bootstrap.servers": "127.0.0.1:70000"}, "70000"),
        ({"advertised.listeners": "PLAINTEXT://127.0.0.1:70000"}, "70000"),
    ],
)
def test_configuration_that_makes_no_sense(
    node: Node, settings: Mapping[str, str], words: str
) -> None:
    node.configure(settings)
    assert words in refused(node)


def test_unknown_keys_are_named_and_ignored(node: Node) -> None:
    node.configure({"no.such.key": "1", "nor.this": "x"})
    with node.process as process:
        line = process.wait_for_line("Unknown configuration keys")
        assert line.count("no.such.key") == line.count("nor.this") == 1
        assert create(node.broker, "topic") == [ErrorCode.NONE]


def test_a_file_that_is_not_there(node: Node) -> None:
    node.properties.unlink()
    assert str(node.properties) in refused(node)


def test_a_file_that_is_a_directory(node: Node) -> None:
    node.properties.unlink()
    node.properties.mkdir()
    assert str(node.properties) in refused(node)


def test_a_file_of_random_bytes(node: Node) -> None:
    node.properties.write_bytes(bytes(range(256)) * 4)
    refused(node)
