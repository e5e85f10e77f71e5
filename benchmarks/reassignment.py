"""The pause of writes while three voters are replaced by three others, ours beside real Kafka.

Six controllers run, of which three are voters. A client creates topics one after the other, and the
longest time between two acknowledgements counts. Ours gets the target voters (KIP-642). Real Kafka
is taken there by its own tool, as an operator would do it: three voters are added, then the three
former ones are removed, the leader last. Settings are the default ones.
"""

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

from benchmarks.controller_client import ControllerClient, NobodyAnswersError
from benchmarks.quorum_processes import Program, QuorumProcesses, kafka, kvorum
from benchmarks.report import Row, outage_rows
from tests.support.kafka.fetch_jars import JARS_ROOT, REFERENCE_RELEASE, find_java
from tests.support.kafka.java import Java, ToolRunner
from tests.support.quorum.topic_writers import alter

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_quorum import DescribeQuorumResponse
from kvorum.wire.uuid_text import uuid_to_text

ROUNDS: Final = 6
ONES: Final = (1, 2, 3)
OTHERS: Final = (4, 5, 6)
BEAT_SECONDS: Final = 1.0
LOOK_SECONDS: Final = 0.02
PATIENCE_SECONDS: Final = 120.0
Reassign = Callable[[QuorumProcesses, ControllerClient, Sequence[int]], None]


class Pauses:
    """A client that writes as long as the context lasts, and its longest wait."""

    def __init__(self, quorum: QuorumProcesses, client: ControllerClient) -> None:
        self.longest_ms = 0.0
        self._quorum = quorum
        self._client = client
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _write(self) -> None:
        addresses = list(self._quorum.running.values())
        last = beaten = time.perf_counter()
        while not self._is_over.is_set():
            now = self._client.create_topic(addresses)
            self.longest_ms = max(self.longest_ms, (now - last) * 1000)
            last = now
            if now - beaten > BEAT_SECONDS:
                self._client.beat_once(addresses)
                # The heartbeat is not what is measured.
                last = beaten = time.perf_counter()


def leader_of(
    quorum: QuorumProcesses, client: ControllerClient
) -> DescribeQuorumResponse.PartitionData | None:
    """Return what the leader says of the quorum, None without one."""
    for node_id, address in quorum.running.items():
        found = client.describe(address)
        if found is not None and found.error_code == ErrorCode.NONE and found.leader_id == node_id:
            return found
    return None


def wait_for_voters(
    quorum: QuorumProcesses, client: ControllerClient, voters: Sequence[int]
) -> DescribeQuorumResponse.PartitionData:
    """Wait until the voters are these and the others observe; return what the leader says."""
    deadline = time.perf_counter() + PATIENCE_SECONDS
    while time.perf_counter() < deadline:
        found = leader_of(quorum, client)
        if found is not None:
            present = {state.replica_id for state in found.current_voters}
            observing = {state.replica_id for state in found.observers}
            if present == set(voters) and present | observing == set(quorum.ports):
                return found
        time.sleep(LOOK_SECONDS)
    raise NobodyAnswersError(f"the voters did not become {voters}")


def by_target_voters(
    quorum: QuorumProcesses, client: ControllerClient, voters: Sequence[int]
) -> None:
    deadline = time.perf_counter() + PATIENCE_SECONDS
    while time.perf_counter() < deadline:
        found = leader_of(quorum, client)
        if found is not None:
            code, _ = alter(quorum.running[found.leader_id], voters)
            if code == ErrorCode.NONE:
                return
        time.sleep(LOOK_SECONDS)
    raise NobodyAnswersError("the target voters are not accepted")


def by_hand(tools: ToolRunner) -> Reassign:
    """Return what an operator does with kafka-metadata-quorum."""

    def run(quorum: QuorumProcesses, *arguments: str) -> None:
        servers = ",".join(quorum.running.values())
        deadline = time.perf_counter() + PATIENCE_SECONDS
        done = tools.run("kafka-metadata-quorum", "--bootstrap-controller", servers, *arguments)
        while done.exit_code and time.perf_counter() < deadline:
            # A replica that is added right after its start may be lagging behind.
            done = tools.run("kafka-metadata-quorum", "--bootstrap-controller", servers, *arguments)
        if done.exit_code:
            raise NobodyAnswersError(done.stdout + done.stderr)

    def reassign(quorum: QuorumProcesses, client: ControllerClient, voters: Sequence[int]) -> None:
        for node_id in voters:
            run(quorum, "--command-config", str(quorum.properties_of(node_id)), "add-controller")
        found = leader_of(quorum, client)
        assert found is not None
        leaving = [one for one in found.current_voters if one.replica_id not in voters]
        for state in sorted(leaving, key=lambda one: one.replica_id == found.leader_id):
            directory = uuid_to_text(state.replica_directory_id)
            keys = ("--controller-id", str(state.replica_id), "--controller-directory-id")
            run(quorum, "remove-controller", *keys, directory)

    return reassign


class Contender:
    """A running quorum of six, and how it is taken from three voters to the three others."""

    def __init__(self, program: Program, reassign: Reassign, resources: ExitStack) -> None:
        self.program = program
        self.pauses_ms: list[float] = []
        self._reassign = reassign
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
        self._quorum = resources.enter_context(
            QuorumProcesses(program, folder, count=6, voter_ids=ONES)
        )
        self._client = ControllerClient("writer")
        self._looker = ControllerClient("looker")
        resources.callback(self._client.close)
        resources.callback(self._looker.close)
        self._voters = ONES

    def replace_voters(self) -> None:
        """Replace all three voters while a client writes, and record its longest pause."""
        wait_for_voters(self._quorum, self._looker, self._voters)
        self._client.play_broker(list(self._quorum.running.values()))
        self._voters = OTHERS if self._voters == ONES else ONES
        with Pauses(self._quorum, self._client) as pauses:
            self._reassign(self._quorum, self._looker, self._voters)
            wait_for_voters(self._quorum, self._looker, self._voters)
        self._quorum.assert_running()
        self.pauses_ms.append(pauses.longest_ms)


def rows() -> list[Row]:
    java = Java(find_java(), JARS_ROOT / REFERENCE_RELEASE)
    with ExitStack() as resources:
        tools = resources.enter_context(ToolRunner(java))
        ours = Contender(kvorum(), by_target_voters, resources)
        theirs = Contender(kafka(), by_hand(tools), resources)
        for number in range(1, ROUNDS + 1):
            for each in (ours, theirs):
                each.replace_voters()
                print(
                    f"{each.program.name}, round {number}: {each.pauses_ms[-1]:.0f} ms",
                    file=sys.stderr,
                )
        what = "three voters replaced, the longest pause of writes"
        return outage_rows(what, theirs.program.name, ours.pauses_ms, theirs.pauses_ms)
