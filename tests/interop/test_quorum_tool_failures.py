"""``kvorum quorum`` and kafka-metadata-quorum, asking the same server that answers with errors."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.quorum_tools import comparable, run_ours, run_real
from tests.support.fake_node import SILENCE, Answer, FakeNode
from tests.support.kafka.tools import ToolResult, ToolRunner
from tests.support.threads import Threads

from kvorum.cli.admin.errors import is_retriable
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import AddRaftVoterResponse
from kvorum.wire.messages.describe_cluster import DescribeClusterResponse
from kvorum.wire.messages.describe_quorum import DescribeQuorumResponse
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterResponse
from kvorum.wire.primitives import Message

DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"
DESCRIBE = ("describe", "--replication")
STATUS = ("describe", "--status")
REMOVE = ("remove-controller", "-i", "1", "-d", DIRECTORY)
ADD = ("add-controller",)
TOPIC = "__cluster_metadata"
ONCE = "retries=0\n"
"""Gives up where the default would go on until the time is up; the text is the same."""
FINAL = [code for code in ErrorCode if code != ErrorCode.NONE and not is_retriable(code)]
RETRIABLE = [code for code in ErrorCode if is_retriable(code)]


class Server:
    """A FakeNode with a loop and a thread of its own, so that tools can be run beside it."""

    def __init__(self) -> None:
        self.node = FakeNode()
        self._loop = asyncio.new_event_loop()
        self._threads = Threads()
        self._threads.start(self._loop.run_forever)
        self._run(self.node.__aenter__())

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.node.port}"

    def answer(self, **answers: Message | None) -> None:
        """Answer these requests so from now on; None hangs up."""
        for name, answer in answers.items():
            self.node.answer(name, _always(answer))

    def close(self) -> None:
        self._run(self.node.__aexit__())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._threads.join()
        self._loop.close()

    def _run(self, coroutine: object) -> None:
        assert asyncio.iscoroutine(coroutine)
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)


def _always(answer: Message | None) -> Answer:
    return lambda _: answer


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a controller to add, which holds the client's settings too."""
    folder = tmp_path_factory.mktemp("controller")
    text = f"version=1\ncluster.id=c\nnode.id=4\ndirectory.id={DIRECTORY}\n"
    (folder / "meta.properties").write_text(text)
    file = folder / "controller.properties"
    file.write_text(
        f"process.roles=controller\nnode.id=4\nlog.dirs={folder}\n"
        "listeners=CONTROLLER://h:1\ncontroller.listener.names=CONTROLLER\n"
        f"request.timeout.ms=10000\n{ONCE}"
    )
    return file


def quorum_error(code: ErrorCode, message: str | None = None, *, leader_id: int = 1) -> Message:
    partition = DescribeQuorumResponse.PartitionData(
        error_code=code,
        error_message=message,
        leader_id=leader_id,
        current_voters=[DescribeQuorumResponse.ReplicaState(1)],
    )
    topics = [DescribeQuorumResponse.TopicData(TOPIC, [partition])]
    return DescribeQuorumResponse(topics=topics, error_message=None)


def both(
    server: Server, settings: Path, tools: ToolRunner, *command: str, by: str = "server"
) -> ToolResult:
    """Run both tools, compare what they say, and return it."""
    arguments = ["--command-config", str(settings), f"--bootstrap-{by}", server.address, *command]
    mine, real = (
        _without_numbers(comparable(result))
        for result in (run_ours(arguments), run_real(arguments, tools))
    )
    assert mine == real
    return mine


def _without_numbers(result: ToolResult) -> ToolResult:
    """Hide times of the day, and which of a client's requests it was."""
    text = re.sub(r"\b\d{13}\b", "TIME", result.stderr)
    text = re.sub(r"(?<=correlation id )\d+", "N", text)
    return ToolResult(result.exit_code, result.stdout, text)


@pytest.mark.parametrize("code", [*FINAL, *RETRIABLE], ids=lambda code: code.name)
def test_each_error_of_a_description(
    code: ErrorCode, server: Server, settings: Path, kafka_tools: ToolRunner
) -> None:
    server.answer(DescribeQuorum=quorum_error(code))
    told = both(server, settings, kafka_tools, *DESCRIBE)
    assert told.exit_code == 1
    assert ("timed out at TIME after 1 attempt(s)" in told.stderr) == (
        is_retriable(code) and code is not ErrorCode.REQUEST_TIMED_OUT
    )


@pytest.mark.parametrize("code", FINAL, ids=lambda code: code.name)
def test_each_error_of_a_change(
    code: ErrorCode, server: Server, settings: Path, kafka_tools: ToolRunner
) -> None:
    server.answer(
        AddRaftVoter=AddRaftVoterResponse(error_code=code, error_message="because"),
        RemoveRaftVoter=RemoveRaftVoterResponse(error_code=code, error_message=None),
        DescribeCluster=DescribeClusterResponse(error_code=code, error_message=""),
    )
    for command in (ADD, REMOVE, STATUS):
        assert both(server, settings, kafka_tools, *command).exit_code == 1


@pytest.mark.parametrize(
    "code",
    [ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT],
    ids=lambda code: code.name,
)
@pytest.mark.parametrize("by", ["server", "controller"])
def test_errors_that_depend_on_the_asked_node(
    code: ErrorCode, by: str, server: Server, settings: Path, kafka_tools: ToolRunner
) -> None:
    server.answer(
        AddRaftVoter=AddRaftVoterResponse(error_code=code, error_message="because"),
        RemoveRaftVoter=RemoveRaftVoterResponse(error_code=code, error_message=None),
        DescribeCluster=server.node.described_cluster(),
        DescribeQuorum=quorum_error(code, "because"),
    )
    for command in (ADD, REMOVE, DESCRIBE):
        assert both(server, settings, kafka_tools, *command, by=by).exit_code == 1


def test_a_code_of_a_later_release(server: Server, settings: Path, kafka_tools: ToolRunner) -> None:
    server.answer(RemoveRaftVoter=RemoveRaftVoterResponse(error_code=999, error_message="new"))
    told = both(server, settings, kafka_tools, *REMOVE)
    assert "UnknownServerException: new" in told.stderr


@pytest.mark.parametrize(
    "answer",
    [
        DescribeQuorumResponse(error_message=None),
        DescribeQuorumResponse(error_code=ErrorCode.INVALID_REQUEST, error_message="no"),
        DescribeQuorumResponse(topics=[DescribeQuorumResponse.TopicData("other")]),
        DescribeQuorumResponse(topics=[DescribeQuorumResponse.TopicData(TOPIC)]),
        DescribeQuorumResponse(
            topics=[
                DescribeQuorumResponse.TopicData(TOPIC, [DescribeQuorumResponse.PartitionData(5)])
            ]
        ),
        quorum_error(ErrorCode.NONE, leader_id=-1),
        quorum_error(ErrorCode.NONE, leader_id=7),
    ],
    ids=["empty", "refused", "other topic", "nothing", "other partition", "no leader", "no voter"],
)
def test_strange_descriptions(
    answer: Message, server: Server, settings: Path, kafka_tools: ToolRunner
) -> None:
    server.answer(DescribeQuorum=answer)
    assert both(server, settings, kafka_tools, *DESCRIBE).exit_code == 1


def test_a_server_that_hangs_up(server: Server, settings: Path, kafka_tools: ToolRunner) -> None:
    server.answer(DescribeQuorum=None)
    told = both(server, settings, kafka_tools, *DESCRIBE)
    assert "DisconnectException: Cancelled describeMetadataQuorum request" in told.stderr


@pytest.mark.parametrize("by", ["server", "controller"])
def test_a_server_that_stops_answering(
    by: str, server: Server, settings: Path, kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    hasty = tmp_path / "hasty.properties"
    times = "request.timeout.ms=600\ndefault.api.timeout.ms=3000\n"
    hasty.write_text(f"{settings.read_text()}{times}")
    server.answer(DescribeQuorum=SILENCE, DescribeCluster=server.node.described_cluster())
    told = both(server, hasty, kafka_tools, *DESCRIBE, by=by)
    assert "DisconnectException: Cancelled describeMetadataQuorum request" in told.stderr
