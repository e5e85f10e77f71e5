"""The words of a tool while a quorum's voters change, in a form that is alike for all quorums.

Hidden is what two quorums cannot share: directory ids, ports, times, offsets and lags, epochs, and
who leads. A replica is called by what it is at the moment: ``leader``, ``voter 1``, ``observer 1``
and so on, in the order of node ids; lists are put into that order, because neither Kafka nor we
promise one. All else stays: every word, who is a voter and who observes, whether the endpoints are
known and belong to the node, whether a directory is the node's present one, and whether a replica
has ever fetched.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.interop.quorum_tools import comparable, without_progress
from tests.support.kafka.tools import ToolResult, ToolRunner
from tests.support.node import CLUSTER_ID, Key
from tests.support.quorum.quorum import NO_DIRECTORY, Quorum

from kvorum.wire.messages.describe_quorum import DescribeQuorumResponse
from kvorum.wire.uuid_text import uuid_to_text

Tool = Callable[[Sequence[str]], ToolResult]
_DIRECTORY = re.compile(r"(directoryId=|directory id )[\w-]{22}(?![\w-])")
_NODE_LIST = re.compile(r"\[\d+(?:, \d+)*\]")
_REPLICA_ID = re.compile(r"\b(id|controller|voter) ?=? ?(-?\d+)\b")


@dataclass
class Story:
    """One quorum, the tool that changes it, and what the tool said; the other tool looks on."""

    quorum: Quorum
    tool: Tool
    other_tool: Tool
    brokers: str = ""
    """The server to ask instead of the controllers."""
    lines: list[str] = field(default_factory=list[str])

    def add(self, node_id: int, *options: str) -> None:
        """Add a controller by its configuration file."""
        file = str(self.quorum.members[node_id].properties)
        self._change("--command-config", file, arguments=("add-controller", *options))

    def remove(self, key: Key, *options: str) -> None:
        """Remove a controller."""
        node_id, directory_id = key
        which = ("--controller-id", str(node_id), "--controller-directory-id", directory_id)
        self._change(arguments=("remove-controller", *which, *options))

    def describe(self, voters: set[Key], observers: set[Key]) -> int:
        """Describe the quorum in every way once it is as it should be; return the leader's id."""
        for form in ("--status", "--replication", "--replication --human-readable"):
            while True:
                before = self.quorum.settled(voters, observers)
                told = without_progress(self._run("describe", *form.split()))
                seen = without_progress(self._run("describe", *form.split(), by=self.other_tool))
                after = self.quorum.settled(voters, observers)
                # Were there an election meanwhile, the two would speak of different leaders.
                if _leadership(before) == _leadership(after) and _cast(before) == _cast(after):
                    break
            assert comparable(told) == comparable(seen)
            assert told.exit_code == 0, told.stderr
            names = _Names(self.quorum, after)
            retell = names.table if "--replication" in form else names.status
            self.lines += [f"$ describe {form}", *retell(told.stdout)]
        return after.leader_id

    def features(self, *arguments: str, tools: ToolRunner) -> None:
        """Have Kafka's own tool for features say or do something."""
        result = comparable(
            tools.run("kafka-features", "--bootstrap-controller", self.quorum.addresses, *arguments)
        )
        text = re.sub(r"(?<=Epoch: )\d+", "N", f"{result.stdout}{result.stderr}")
        text = re.sub(r"(?<=controller )\d+", "N", text)
        words = " ".join(arguments)
        self.lines += [f"$ features {words}", f"-> {result.exit_code}", *text.splitlines()]

    def _change(self, *options: str, arguments: Sequence[str]) -> None:
        result = comparable(self._run(*arguments, options=options))
        words = " ".join(word for word in arguments if word.startswith("--dry"))
        text = "\n".join(filter(None, (result.stdout.strip(), result.stderr)))
        self.lines += [
            f"$ {arguments[0]} {words}".rstrip(),
            f"-> {result.exit_code}",
            *_anonymous(text).splitlines(),
        ]

    def _run(
        self, *arguments: str, options: Sequence[str] = (), by: Tool | None = None
    ) -> ToolResult:
        tool = by or self.tool
        where = ["--bootstrap-controller", self.quorum.addresses]
        if self.brokers:
            where = ["--bootstrap-server", self.brokers]
        return tool([*options, *where, *arguments])


def _leadership(found: DescribeQuorumResponse.PartitionData) -> tuple[int, int]:
    return found.leader_id, found.leader_epoch


def _cast(found: DescribeQuorumResponse.PartitionData) -> list[tuple[int, bytes]]:
    states = (*found.current_voters, *found.observers)
    return sorted((state.replica_id, state.replica_directory_id) for state in states)


def _anonymous(text: str) -> str:
    text = re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", text)
    text = _DIRECTORY.sub(r"\1DIRECTORY", text)
    text = _NODE_LIST.sub(lambda found: f"[{len(found[0].split(','))} nodes]", text)
    return _REPLICA_ID.sub(r"\1 N", text)


class _Names:
    """The names of a quorum's replicas at one moment."""

    def __init__(self, quorum: Quorum, found: DescribeQuorumResponse.PartitionData) -> None:
        self._quorum = quorum
        self._leader_id = found.leader_id
        keys = [
            (state.replica_id, uuid_to_text(state.replica_directory_id))
            for state in (*found.current_voters, *found.observers)
        ]
        voters, observers = keys[: len(found.current_voters)], keys[len(found.current_voters) :]
        followers = [key for key in sorted(voters) if key[0] != found.leader_id]
        self._names = {key: "leader" for key in voters if key[0] == found.leader_id}
        self._names |= {key: f"voter {index}" for index, key in enumerate(followers, 1)}
        by_age = sorted(observers, key=lambda key: (key[0], self._is_present(key)))
        self._names |= {key: f"observer {index}" for index, key in enumerate(by_age, 1)}

    def status(self, text: str) -> list[str]:
        """Retell the status."""
        retold: list[str] = []
        for line in text.splitlines():
            name, value = (part.strip() for part in line.split(":", 1))
            match name:
                case "ClusterId":
                    assert value == CLUSTER_ID
                    value = "CLUSTER"
                case "LeaderId":
                    assert value == str(self._leader_id)
                    value = "leader"
                case "LeaderEpoch":
                    value = re.sub(r"^\d+$", "N", value)
                case "CurrentVoters" | "CurrentObservers":
                    value = ", ".join(sorted(map(self._replica, json.loads(value))))
                case _:
                    pass
            retold.append(f"{name}: {value}")
        return retold

    def table(self, text: str) -> list[str]:
        """Retell the table; its rows have been rid of offsets and times."""
        head, *rows = text.splitlines()
        retold: list[str] = []
        for row in rows:
            node_id, directory_id, status, *fetches = row.split()
            key = (int(node_id), directory_id)
            retold.append(f"{self._names[key]} {self._age(key)} {status} {' '.join(fetches)}")
        return [head, *sorted(retold)]

    def _replica(self, replica: dict[str, object]) -> str:
        key = (int(str(replica["id"])), str(replica.get("directoryId", NO_DIRECTORY)))
        at_home = [f"CONTROLLER://{self._quorum.members[key[0]].address}"]
        places = replica.get("endpoints", "endpoints unknown")
        where = "its endpoints" if places == at_home else str(places)
        return f"{self._names[key]}: {self._age(key)}, {where}"

    def _is_present(self, key: Key) -> bool:
        return self._quorum.members[key[0]].key == key

    def _age(self, key: Key) -> str:
        if key[1] == NO_DIRECTORY:
            return "any directory"
        return "present directory" if self._is_present(key) else "former directory"
