"""Starts of a process that cannot succeed: one clear line, an exit code, the disk as it was.

Most mistakes are in node/test_start_errors.py.
"""

from tests.process.failed_nodes import assert_one_line, refused
from tests.support.node import Node
from tests.support.node_process import kvorum_server
from tests.support.topics import create, read_topics

from kvorum.wire.error_codes import ErrorCode


def test_a_start_that_fails_is_one_line_and_changes_nothing(node: Node) -> None:
    node.configure({"node.id": "7"})
    line = refused(node)
    assert "7" in line
    assert "node id" in line


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


def test_unknown_keys_are_named_and_ignored(node: Node) -> None:
    node.configure({"no.such.key": "1", "nor.this": "x"})
    with node.process as process:
        line = process.wait_for_line("Unknown configuration keys")
        assert line.count("no.such.key") == line.count("nor.this") == 1
        assert create(node.broker, "topic") == [ErrorCode.NONE]
