"""The start of a metadata log that is trimmed: it moves after a snapshot."""

from tests.support.waiting import wait_for_async

from kvorum.node.kafka_raft_server import KafkaRaftServer

SETTINGS = {
    "kvorum.metadata.topic.readable": "true",
    "metadata.max.idle.interval.ms": "0",
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    # Nothing is kept that a snapshot contains, and files go at once.
    "metadata.max.retention.bytes": "1",
    "internal.metadata.delete.delay.millis": "0",
    "internal.metadata.log.segment.bytes": "4000",
}


async def move_start(node: KafkaRaftServer) -> int:
    """Have the node clean its log as it does once a minute; return where the log starts then.

    What lies before has no file any more.
    """
    raft = node.shared_server.raft
    log = raft.log.local_log
    before = log.log_start_offset

    def cleaned() -> int | None:
        raft.clean()
        return log.log_start_offset if log.log_start_offset > before else None

    # A snapshot is being written in another thread.
    start = await wait_for_async(cleaned, "a snapshot lets the log's start move")
    await wait_for_async(
        lambda: len([*log.directory.glob("*.log*")]) == len(log.segments), "the files are gone"
    )
    return start
