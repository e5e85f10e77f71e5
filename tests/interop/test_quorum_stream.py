"""A stream over a quorum whose leader is killed again and again: each committed record once."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.interop.quorum_tools import run_ours, run_real
from tests.interop.stream_rows import (
    COLUMNS,
    MORE,
    Row,
    check,
    read_on,
    rows_of,
    stream_over,
    writing,
)
from tests.support.kafka.java import Java, ToolResult, ToolRunner
from tests.support.quorum.quorum import MakeQuorum, Quorum, registered_controllers
from tests.support.spark.streaming_reads import start_patiently
from tests.support.waiting import wait_for

from kvorum.quorum_client.errors import QuorumError
from kvorum.spark import KvorumMetadataSource
from kvorum.spark.session import build_session

KILLS = 3
RESTARTS = 2


@pytest.fixture(scope="session")
def spark(java: Java) -> Iterator[SparkSession]:
    """A session on two cores of this machine.

    A process has one, which other tests use as well, so it ends with the run.
    """
    del java
    session = build_session(master="local[2]")
    session.dataSource.register(KvorumMetadataSource)
    yield session
    session.stop()


class Stream:
    """A query that writes files, which Spark does exactly once, from one checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path, controllers: str) -> None:
        self._spark = spark
        self._rows = folder / "rows"
        self._checkpoint = folder / "checkpoint"
        self._controllers = controllers
        self._query: StreamingQuery | None = None

    def start(self) -> None:
        """Start the query, and wait until it has read something."""
        self._query = start_patiently(self._started, has_progress)

    def _started(self) -> StreamingQuery:
        table = (
            self._spark.readStream.format("kvorum-metadata")
            .option("controllers", self._controllers)
            .option("columns", ",".join(COLUMNS))
            .load()
        )
        return (
            table.writeStream.format("parquet")
            .option("path", str(self._rows))
            .option("checkpointLocation", str(self._checkpoint))
            .start()
        )

    def stop(self) -> None:
        assert self._query is not None
        self._query.stop()
        assert self._query.exception() is None

    def catch_up(self, offset: int) -> None:
        """Wait until the rows reach an offset; there is always news, so not until there is none."""

        def look() -> bool:
            assert self._query is not None
            assert self._query.exception() is None, self._query.exception()
            progress = self._query.lastProgress
            if progress is None:
                return False
            end = json.loads(progress.json)["sources"][0]["endOffset"]
            return end is not None and bool(end["offset"] >= offset)

        wait_for(look, f"the query has come to offset {offset}")

    def rows(self) -> list[Row]:
        table = self._spark.read.parquet(str(self._rows))
        return [(row["offset"], row["epoch"], row["json"]) for row in table.collect()]


def has_progress(query: StreamingQuery) -> bool:
    wait_for(
        lambda: bool(query.recentProgress) or not query.isActive,
        "the query has read something, or has ended",
    )
    return query.isActive


@pytest.fixture(params=["kvorum", "kafka"])
def quorum(request: pytest.FixtureRequest, make_quorum: MakeQuorum) -> Iterator[Quorum]:
    """Three running controllers, of ours or of Kafka's."""
    with make_quorum(request.param, 3) as found:
        found.form([1, 2, 3])
        found.start()
        found.settled(found.keys(1, 2, 3))
        yield found


def named(quorum: Quorum) -> str:
    """Return two of the three addresses: the third is found by the answers of these."""
    return ",".join(quorum.members[node_id].address for node_id in (1, 2))


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.slow
def test_every_committed_record_is_read_once(quorum: Quorum) -> None:
    stream = stream_over({"controllers": named(quorum)})
    with writing(quorum) as writer:
        for number in range(KILLS):
            read_on(stream, writer)
            leader = kill_the_leader(quorum)
            if number < RESTARTS:
                # The query ends with a micro-batch that is planned, read, and not committed.
                writer.wait_for_more(MORE)
                assert stream.plan()
                before = stream.read()
                stream.restart()
                assert stream.advance() == before
            read_on(stream, writer)
            quorum.start(leader)
    read_on(stream, writer, more=0)
    stream.stop()
    check(rows_of(stream), quorum, writer, epochs_min=KILLS + 1)


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.slow
def test_every_committed_record_is_a_row_once(
    quorum: Quorum, spark: SparkSession, tmp_path: Path
) -> None:
    stream = Stream(spark, tmp_path, named(quorum))
    with writing(quorum) as writer:
        stream.start()
        for number in range(KILLS):
            writer.wait_for_more(MORE)
            leader = kill_the_leader(quorum)
            if number < RESTARTS:
                stream.stop()
                stream.start()
            writer.wait_for_more(MORE)
            quorum.start(leader)
    found = quorum.described()
    assert found is not None
    stream.catch_up(found.high_watermark)
    stream.stop()
    check(stream.rows(), quorum, writer, epochs_min=KILLS + 1)


def kill_the_leader(quorum: Quorum) -> int:
    found = quorum.described()
    assert found is not None
    quorum.kill(found.leader_id)
    return found.leader_id


FIRST = 1
LATER: dict[str, tuple[int, ...]] = {"kvorum": (2, 3, 4), "kafka": (2,)}


@pytest.fixture(params=["kvorum", "kafka"])
def growing_quorum(request: pytest.FixtureRequest, make_quorum: MakeQuorum) -> Iterator[Quorum]:
    """The first voter, and the later ones as observers; all of them run."""
    later = LATER[request.param]
    with make_quorum(request.param, len(later) + 1) as found:
        found.form([FIRST])
        found.start()
        found.settled(found.keys(FIRST), found.keys(*later))
        yield found


def replace_the_voter(growing_quorum: Quorum, tools: ToolRunner) -> None:
    """Have the later controllers take over, by each kind's own command."""
    later = LATER[growing_quorum.members[FIRST].kind]
    first = growing_quorum.members[FIRST]
    where = ("--bootstrap-controller", growing_quorum.addresses)
    if growing_quorum.members[FIRST].kind == "kvorum":
        growing_quorum.wait_for(
            lambda: {*later} <= registered_controllers(first.address), f"{later} are registered"
        )
        wanted = ",".join(map(str, later))
        demand_success(run_ours([*where, "reassign", "--voters", wanted, "--wait"]))
        return
    for newcomer in later:
        file = str(growing_quorum.members[newcomer].properties)
        demand_success(run_real(("--command-config", file, *where, "add-controller"), tools))
    node_id, directory_id = first.key
    which = ("--controller-id", str(node_id), "--controller-directory-id", directory_id)
    demand_success(run_real((*where, "remove-controller", *which), tools))


def demand_success(result: ToolResult) -> None:
    assert result.exit_code == 0, result


@pytest.mark.slow
def test_every_record_is_read_once_while_the_named_controller_is_replaced(
    growing_quorum: Quorum, kafka_tools: ToolRunner
) -> None:
    later = LATER[growing_quorum.members[FIRST].kind]
    options = {"controllers": growing_quorum.members[FIRST].address}
    stream = stream_over(options)
    with writing(growing_quorum) as writer, ThreadPoolExecutor(1) as pool:
        read_on(stream, writer)
        change = pool.submit(replace_the_voter, growing_quorum, kafka_tools)
        while not change.done():
            stream.advance()
        change.result()
        found = growing_quorum.settled(growing_quorum.keys(*later), growing_quorum.keys(FIRST))
        # The one address that the stream was given has no listener any more.
        growing_quorum.members[FIRST].stop()
        read_on(stream, writer)
        left = {*later}
        if len(left) > 2:
            # The next leader is found among the voters that were learnt.
            growing_quorum.kill(found.leader_id)
            left.remove(found.leader_id)
            read_on(stream, writer)
        writer.wait_for_more(1)
        assert stream.plan()
        # Addresses that were learnt in a run are not in the checkpoint.
        options["retryTimeoutMs"] = "1000"
        stream.restart()
        with pytest.raises(QuorumError, match=rf"asked were {options['controllers']}; .*refused"):
            stream.read()
        options["controllers"] = growing_quorum.members[left.pop()].address
        options["retryTimeoutMs"] = "60000"
        stream.restart()
        read_on(stream, writer)
    read_on(stream, writer, more=0)
    stream.stop()
    check(rows_of(stream), growing_quorum, writer, epochs_min=2)
