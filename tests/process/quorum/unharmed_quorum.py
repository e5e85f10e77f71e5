"""The signs that a quorum is alive and well, and that the logs of its members are alike."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from tests.support.kafka.java import ToolRunner
from tests.support.node import Node
from tests.support.quorum.quorum import Quorum
from tests.support.quorum.topic_writers import Writers
from tests.support.raw_client import RawClient
from tests.support.topics import create_request

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import CreateTopicsResponse
from kvorum.wire.records import read_batches
from kvorum.wire.uuid_text import uuid_to_text

# Lines of a process about something that its code does not expect.
BUGS = ("Traceback", "replica of the metadata log stops")
ASK_TIMEOUT_S = 5.0
TOPIC_RECORD = re.compile(r'payload: (\{"type":"TOPIC_RECORD".*\})$', re.MULTILINE)
BATCH_LINE = re.compile(r"^baseOffset: (\d+) ", re.MULTILINE)
# The place of a batch in its file, which is another one in a log that begins later.
POSITION = re.compile(r"\bposition: \d+")


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


def assert_same_batches(members: Sequence[Node], *, end_offset: int) -> None:
    """All logs hold the same bytes, from where the last one begins to the end that all had.

    What a controller wrote after that, to tell of itself, others may not have.
    """
    logs = [_batches(member) for member in members]
    start_offset = max(min(log) for log in logs)
    shared = [
        {offset: log[offset] for offset in log if start_offset <= offset < end_offset}
        for log in logs
    ]
    for member, log in zip(members, shared, strict=True):
        assert log == shared[0], f"node {member.node_id} has another log"
        assert next(read_batches(log[max(log)])).last_offset + 1 == end_offset


def assert_kafka_reads_the_same(
    tools: ToolRunner,
    members: Sequence[Node],
    writers: Writers,
    *,
    end_offset: int,
    others: str | None = None,
) -> None:
    """Real kafka-dump-log shows the same for all of them, and every topic once in each.

    Topics that the writers know nothing of have to begin with `others`.
    """
    dumps = [_dump(tools, _segments(member)) for member in members]
    start_offset = max(_first_offset(dump) for dump in dumps)
    shown = [_part(dump, start_offset, end_offset) for dump in dumps]
    for member, dump, part in zip(members, dumps, shown, strict=True):
        assert part == shown[0], f"node {member.node_id} has another log"
        before = _dump(tools, _snapshots_before(member, _first_offset(dump)))
        _assert_topics(before + dump, writers, others)


def _segments(member: Node) -> list[Path]:
    return sorted(member.metadata_log.glob("*.log"))


def _snapshots_before(member: Node, start_offset: int) -> list[Path]:
    """Return the one snapshot that a log which does not begin at 0 goes on from."""
    if start_offset == 0:
        return []
    found = list(member.metadata_log.glob(f"{start_offset:020d}-*.checkpoint"))
    assert len(found) == 1, f"node {member.node_id} lacks what was before {start_offset}"
    return found


def _batches(member: Node) -> dict[int, bytes]:
    data = b"".join(file.read_bytes() for file in _segments(member))
    batches = list(read_batches(data))
    assert sum(batch.size for batch in batches) == len(data)
    return {batch.base_offset: bytes(batch.data) for batch in batches}


def _dump(tools: ToolRunner, files: Sequence[Path]) -> str:
    text = ""
    for file in files:
        dump = tools.run("kafka-dump-log", "--cluster-metadata-decoder", "--files", str(file))
        said = (dump.exit_code, dump.stderr.strip())
        assert said == (0, _expected_complaint(file)), f"kafka-dump-log of {file}: {said}"
        assert "isvalid: false" not in dump.stdout
        text += dump.stdout[_first_batch(dump.stdout).start() :]
    return text


def _expected_complaint(file: Path) -> str:
    """Return what the tool says of a file that does not begin at 0, as if that were a gap."""
    start_offset = int(file.stem) if file.suffix == ".log" else 0
    if start_offset == 0:
        return ""
    return f"Non-consecutive offsets in {file}\n  -1 is followed by {start_offset}"


def _first_batch(dump: str) -> re.Match[str]:
    found = BATCH_LINE.search(dump)
    assert found is not None, dump
    return found


def _first_offset(dump: str) -> int:
    return int(_first_batch(dump)[1])


def _part(dump: str, start_offset: int, end_offset: int) -> str:
    """Return what is said of the batches between two offsets, but for where they are."""
    start = dump.index(f"baseOffset: {start_offset} ")
    end = dump.find(f"baseOffset: {end_offset} ")
    return POSITION.sub("", dump[start:] if end < 0 else dump[start:end])


def _assert_topics(dump: str, writers: Writers, others: str | None) -> None:
    """Everything acknowledged is there, nothing twice, and nothing that was not asked for."""
    records = [json.loads(payload)["data"] for payload in TOPIC_RECORD.findall(dump)]
    times = Counter(record["name"] for record in records)
    assert [name for name, count in times.items() if count > 1] == [], "there twice"
    assert sorted(writers.acknowledged.keys() - times.keys()) == [], "acknowledged and lost"
    unknown = sorted(times.keys() - writers.wished)
    assert [name for name in unknown if not (others and name.startswith(others))] == []
    found = {record["name"]: record["topicId"] for record in records}
    for name, topic_id in writers.acknowledged.items():
        assert topic_id is None or found[name] == uuid_to_text(topic_id), f"{name} was replaced"


def committed_bytes(member: Node, end_offset: int) -> bytes:
    batches = _batches(member)
    return b"".join(batches[offset] for offset in sorted(batches) if offset < end_offset)
