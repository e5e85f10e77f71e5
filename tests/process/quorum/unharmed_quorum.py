"""The signs that a quorum is alive and well."""

from collections.abc import Sequence
from uuid import uuid4

from tests.support.node import Node
from tests.support.quorum.quorum import Quorum
from tests.support.quorum.topic_writers import Writers
from tests.support.raw_client import RawClient
from tests.support.topics import create_request

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import CreateTopicsResponse

# Lines of a process about something that its code does not expect.
BUGS = ("Traceback", "replica of the metadata log stops")
ASK_TIMEOUT_S = 5.0


def create_at_leader(quorum: Quorum, names: Sequence[str]) -> bool:
    """Create topics at the leader; tell whether they are acknowledged."""
    leader = quorum.described()
    if leader is None:
        return False
    try:
        with RawClient(quorum.members[leader.leader_id].address) as client:
            client.socket.settimeout(ASK_TIMEOUT_S)
            response = client.ask(create_request(names), CreateTopicsResponse, 7)
    except (OSError, AssertionError):
        return False
    return all(topic.error_code == ErrorCode.NONE for topic in response.topics)


def commit_topic(quorum: Quorum, prefix: str) -> None:
    """Create a topic at the node that comes to lead."""

    def is_created() -> bool:
        return create_at_leader(quorum, [f"{prefix}-{uuid4().hex}"])

    quorum.wait_for(is_created, "a topic can be created")


def assert_no_bugs(member: Node) -> None:
    """Nothing happened in a process that its code does not expect."""
    said = [line for line in member.process.lines() if any(bug in line for bug in BUGS)]
    assert said == [], f"node {member.node_id}"


def assert_unharmed(quorum: Quorum) -> None:
    """All who should run do, none has met a bug, and they commit together what is new."""
    commit_topic(quorum, "unharmed")
    for member in quorum.members.values():
        assert_no_bugs(member)
    quorum.wait_until_settled()


def wait_until_it_is_a_voter(quorum: Quorum, member: Node, writers: Writers) -> None:
    """Wait until the leader counts a member in, and that is committed."""
    quorum.wait_for(lambda: _is_voter(quorum, member), f"{member.node_id} is a voter")
    # Records that are acknowledged now are after the new voters in the log.
    writers.wait_for_progress()
    quorum.wait_for(lambda: _is_voter(quorum, member), f"{member.node_id} is still a voter")


def _is_voter(quorum: Quorum, member: Node) -> bool:
    """Tell whether a member is a voter under the directory id that it has now, and has it all."""
    answer = quorum.described()
    if answer is None:
        return False
    found = [one for one in answer.current_voters if one.replica_id == member.node_id]
    is_found = [one.replica_directory_id for one in found] == [member.directory_id]
    return is_found and found[0].log_end_offset >= answer.high_watermark
