"""Requests of the quorum's own protocol, mostly bad, that leave a lone leader as it is.

Written for a node with the id 1 that leads `epoch`; both nodes must answer them alike. What would
stop a real node (a second leader of its own epoch, a snapshot fetched under its own id) is left
out. A field that not all versions have, and that must not be left away, makes two requests of one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.interop.protocol.requests import Fields

from kvorum.wire.api_keys import ApiKey
from kvorum.wire.uuid_text import METADATA_TOPIC_ID, ZERO_UUID

TOPIC = "__cluster_metadata"
OTHER = bytes(range(1, 17))
"""The directory id of no replica."""


@dataclass(frozen=True, slots=True)
class Quorum:
    """The names that a request needs."""

    cluster_id: str
    directory_id: bytes
    epoch: int
    host: str
    port: int

    @property
    def listener(self) -> Fields:
        return {"name": "CONTROLLER", "host": self.host, "port": self.port}


def requests_for(quorum: Quorum) -> dict[int, Sequence[Fields]]:
    """Return the requests by API key."""
    return {
        ApiKey.FETCH: [each for fetch in _fetches(quorum) for each in _named_both_ways(fetch)],
        ApiKey.VOTE: list(_votes(quorum)),
        ApiKey.BEGIN_QUORUM_EPOCH: list(_begins(quorum)),
        ApiKey.END_QUORUM_EPOCH: list(_ends(quorum)),
        ApiKey.DESCRIBE_QUORUM: [
            _of_topic({"partition_index": 0}),
            _of_topic({"partition_index": 1}),
            _of_topic({"partition_index": 0}, topic="orders"),
        ],
        ApiKey.FETCH_SNAPSHOT: list(_snapshot_parts(quorum)),
        ApiKey.ADD_RAFT_VOTER: list(_additions(quorum)),
        ApiKey.REMOVE_RAFT_VOTER: list(_removals(quorum)),
        ApiKey.UPDATE_RAFT_VOTER: list(_updates(quorum)),
    }


def _of_topic(*partitions: Fields, topic: str = TOPIC) -> Fields:
    return {"topics": [{"topic_name": topic, "partitions": list(partitions)}]}


def _shapes(valid: Fields, cluster_id: str) -> Iterator[Fields]:
    """Give requests about one partition of the log with another cluster, topic or partition."""
    partition = valid["topics"][0]["partitions"][0]
    yield {**valid, "cluster_id": None}
    yield {**valid, "cluster_id": "somebody-elses-cluster"}
    yield {**valid, "cluster_id": cluster_id}
    yield {**valid, "topics": []}
    yield {**valid, **_of_topic()}
    yield {**valid, **_of_topic(partition, topic="orders")}
    yield {**valid, **_of_topic(partition, partition)}
    yield {**valid, **_of_topic({**partition, "partition_index": 1})}


def _votes(quorum: Quorum) -> Iterator[Fields]:
    epoch = quorum.epoch
    valid = {
        "partition_index": 0,
        "replica_epoch": epoch,
        "replica_id": 2,
        "replica_directory_id": OTHER,
        "voter_directory_id": quorum.directory_id,
        "last_offset_epoch": epoch - 1,
        "last_offset": 1 << 40,
    }
    yield from _shapes({"voter_id": 1, **_of_topic(valid)}, quorum.cluster_id)
    changes: list[Fields] = [
        {"last_offset": -1},
        {"last_offset_epoch": -1},
        {"last_offset_epoch": epoch},
        {"last_offset_epoch": epoch + 1},
        {"replica_epoch": epoch - 1, "last_offset_epoch": 0},
        {"replica_epoch": -1},
        {"replica_id": -1},
        {"replica_id": 1},
        {"voter_directory_id": OTHER},
        {"voter_directory_id": ZERO_UUID},
        {"pre_vote": True},
        {"pre_vote": True, "last_offset_epoch": epoch},
        {"pre_vote": True, "last_offset_epoch": epoch + 1},
        {"pre_vote": True, "replica_epoch": epoch - 1, "last_offset_epoch": 0},
    ]
    for change in changes:
        for voter_id in (1, 2, -1):
            yield {
                "cluster_id": quorum.cluster_id,
                "voter_id": voter_id,
                **_of_topic({**valid, **change}),
            }


def _begins(quorum: Quorum) -> Iterator[Fields]:
    stale = {
        "partition_index": 0,
        "voter_directory_id": quorum.directory_id,
        "leader_id": 2,
        "leader_epoch": quorum.epoch - 1,
    }
    listener = {"name": "CONTROLLER", "host": "127.0.0.1", "port": 1}
    rest: Fields = {"voter_id": 1, "leader_endpoints": [listener]}
    yield from _shapes({**rest, **_of_topic(stale)}, quorum.cluster_id)
    changes: list[Fields] = [
        {"leader_epoch": -1},
        {"leader_id": -1, "leader_epoch": quorum.epoch},
        {"leader_id": -1, "leader_epoch": quorum.epoch + 1},
        {"leader_id": -1},
        {"voter_directory_id": OTHER},
    ]
    for change in changes:
        yield {"cluster_id": quorum.cluster_id, **rest, **_of_topic({**stale, **change})}


def _ends(quorum: Quorum) -> Iterator[Fields]:
    stale = {"partition_index": 0, "leader_id": 2, "leader_epoch": quorum.epoch - 1}
    yield from _shapes(_of_topic(stale), quorum.cluster_id)
    changes: list[Fields] = [
        {"leader_epoch": -1},
        {"leader_id": -1, "leader_epoch": quorum.epoch},
        {"leader_id": -1, "leader_epoch": quorum.epoch + 1},
        {"leader_id": -1},
        {"preferred_candidates": [{"candidate_id": 1, "candidate_directory_id": OTHER}]},
        {"preferred_successors": [1]},
    ]
    for change in changes:
        yield {"cluster_id": quorum.cluster_id, **_of_topic({**stale, **change})}


def _named_both_ways(fetch: Fields) -> Iterator[Fields]:
    """Give a fetch that names its replica as new versions do, and one for the old ones."""
    replica_id = fetch.get("replica_id", 2)
    rest = {name: value for name, value in fetch.items() if name != "replica_id"}
    yield {**rest, "replica_id": replica_id}
    yield {**rest, "replica_state": {"replica_id": replica_id, "replica_epoch": -1}}


def _fetches(quorum: Quorum) -> Iterator[Fields]:
    epoch = quorum.epoch
    valid = {
        "partition": 0,
        "current_leader_epoch": epoch,
        "fetch_offset": 0,
        "last_fetched_epoch": 0,
        "replica_directory_id": OTHER,
        "partition_max_bytes": 0,
    }

    def fetch(*partitions: Fields, topic_id: bytes = METADATA_TOPIC_ID, **rest: Any) -> Fields:
        topic = {"topic": TOPIC, "topic_id": topic_id, "partitions": list(partitions)}
        return {"cluster_id": quorum.cluster_id, "topics": [topic], **rest}

    yield fetch(valid)
    yield fetch(valid, cluster_id=None)
    yield fetch(valid, cluster_id="somebody-elses-cluster")
    yield fetch(valid, topics=[])
    yield fetch(valid, topic_id=ZERO_UUID)
    yield fetch(valid, topic_id=OTHER)
    yield fetch()
    yield fetch(valid, valid)
    yield fetch({**valid, "partition": 1})
    yield fetch(valid, max_wait_ms=-1)
    yield fetch(valid, replica_id=-1)
    changes: list[Fields] = [
        {"fetch_offset": -1},
        {"last_fetched_epoch": -1},
        {"last_fetched_epoch": epoch + 1},
        {"fetch_offset": 1, "last_fetched_epoch": epoch},
        {"fetch_offset": 1 << 40, "last_fetched_epoch": epoch},
        {"fetch_offset": 1, "last_fetched_epoch": 0},
        {"current_leader_epoch": epoch - 1},
        {"current_leader_epoch": epoch + 1},
        {"current_leader_epoch": -1, "last_fetched_epoch": -1},
        {"high_watermark": -1},
        {"high_watermark": 0, "fetch_offset": 1, "last_fetched_epoch": epoch},
    ]
    for change in changes:
        yield fetch({**valid, **change})


def _snapshot_parts(quorum: Quorum) -> Iterator[Fields]:
    valid = {
        "partition": 0,
        "current_leader_epoch": quorum.epoch,
        "snapshot_id": {"end_offset": 5, "epoch": quorum.epoch},
        "position": 0,
        "replica_directory_id": OTHER,
    }

    def part(*partitions: Fields, name: str = TOPIC, **rest: Any) -> Fields:
        topic = {"name": name, "partitions": list(partitions)}
        return {"cluster_id": quorum.cluster_id, "replica_id": 2, "topics": [topic], **rest}

    yield part(valid)
    yield part(valid, cluster_id=None)
    yield part(valid, cluster_id="somebody-elses-cluster")
    yield part(valid, name="orders")
    yield part({**valid, "partition": 1})
    changes: list[Fields] = [
        {"snapshot_id": {"end_offset": 0, "epoch": 0}},
        {"position": -1},
        {"current_leader_epoch": quorum.epoch - 1},
        {"current_leader_epoch": quorum.epoch + 1},
    ]
    for change in changes:
        yield part({**valid, **change})


def _additions(quorum: Quorum) -> Iterator[Fields]:
    valid = {
        "cluster_id": quorum.cluster_id,
        "timeout_ms": 2000,
        "voter_id": 2,
        "voter_directory_id": OTHER,
        "listeners": [quorum.listener],
    }
    changes: list[Fields] = [
        {"cluster_id": "somebody-elses-cluster"},
        {"voter_id": -1},
        {"voter_directory_id": ZERO_UUID},
        {"listeners": []},
        {"listeners": [{**quorum.listener, "name": "ELSEWHERE", "port": 9093}]},
        {"voter_id": 1},
        {"voter_id": 1, "voter_directory_id": quorum.directory_id},
        # It answers, and would do; but it does not fetch under this id.
        {},
        {"cluster_id": None},
    ]
    for change in changes:
        yield {**valid, **change}


def _removals(quorum: Quorum) -> Iterator[Fields]:
    valid = {
        "cluster_id": quorum.cluster_id,
        "voter_id": 1,
        "voter_directory_id": quorum.directory_id,
    }
    changes: list[Fields] = [
        {"cluster_id": "somebody-elses-cluster"},
        {"voter_id": -1},
        {"voter_directory_id": ZERO_UUID},
        {"voter_directory_id": OTHER},
        {"voter_id": 2},
        # The last voter stays.
        {},
        {"cluster_id": None},
    ]
    for change in changes:
        yield {**valid, **change}


def _updates(quorum: Quorum) -> Iterator[Fields]:
    valid = {
        "cluster_id": quorum.cluster_id,
        "current_leader_epoch": quorum.epoch,
        "voter_id": 2,
        "voter_directory_id": OTHER,
        "listeners": [quorum.listener],
        "k_raft_version_feature": {"min_supported_version": 0, "max_supported_version": 1},
    }
    changes: list[Fields] = [
        {"cluster_id": "somebody-elses-cluster"},
        {"current_leader_epoch": quorum.epoch - 1},
        {"current_leader_epoch": quorum.epoch + 1},
        {"voter_id": -1},
        {"voter_directory_id": ZERO_UUID},
        {"listeners": []},
        {"listeners": [{**quorum.listener, "name": "ELSEWHERE"}]},
        {"k_raft_version_feature": {"min_supported_version": -1, "max_supported_version": 1}},
        {"k_raft_version_feature": {"min_supported_version": 1, "max_supported_version": 0}},
        {"k_raft_version_feature": {"min_supported_version": 0, "max_supported_version": 0}},
        {"k_raft_version_feature": {"min_supported_version": 2, "max_supported_version": 3}},
        # There is no voter of this name.
        {},
        {"voter_id": 1},
    ]
    for change in changes:
        yield {**valid, **change}


def steps_of_giving_way(quorum: Quorum) -> list[tuple[int, int, Fields]]:
    """Return requests, with API key and version, that a lone leader gives up its epoch for.

    They are to be put one after the other, within the fetch timeout of two seconds; in the end the
    node is asked to take over, and leads again.
    """
    epoch = quorum.epoch + 1
    vote = {
        "partition_index": 0,
        "replica_epoch": epoch,
        "replica_id": 2,
        "replica_directory_id": OTHER,
        "voter_directory_id": quorum.directory_id,
        "last_offset_epoch": quorum.epoch,
        "last_offset": 1 << 40,
    }
    behind = {**vote, "last_offset_epoch": 0}
    leader = {
        "partition_index": 0,
        "voter_directory_id": quorum.directory_id,
        "leader_id": 2,
        "leader_epoch": epoch + 1,
    }
    follow: Fields = {
        "voter_id": 1,
        "leader_endpoints": [{"name": "CONTROLLER", "host": "127.0.0.1", "port": 1}],
    }
    later = {**vote, "replica_epoch": epoch + 1, "last_offset_epoch": epoch}
    fetch = {
        "partition": 0,
        "current_leader_epoch": epoch + 1,
        "fetch_offset": 1,
        "last_fetched_epoch": quorum.epoch,
    }
    fetches = {"topic": TOPIC, "topic_id": METADATA_TOPIC_ID, "partitions": [fetch]}
    end = {
        "partition_index": 0,
        "leader_id": 2,
        "leader_epoch": epoch + 1,
        "preferred_candidates": [
            {"candidate_id": 1, "candidate_directory_id": quorum.directory_id}
        ],
    }

    def votes(**partition: Any) -> tuple[int, int, Fields]:
        return (52, 2, {"voter_id": 1, **_of_topic(partition)})

    return [
        votes(**behind, pre_vote=True),
        votes(**behind),
        votes(**vote, pre_vote=True),
        votes(**vote),
        votes(**vote),
        votes(**{**vote, "replica_directory_id": bytes(range(2, 18))}),
        votes(**{**vote, "replica_id": 3}),
        (55, 2, _of_topic({"partition_index": 0})),
        (53, 1, {**follow, **_of_topic(leader)}),
        votes(**later),
        votes(**later, pre_vote=True),
        (1, 17, {"replica_state": {"replica_id": 2, "replica_epoch": -1}, "topics": [fetches]}),
        (55, 2, _of_topic({"partition_index": 0})),
        (53, 1, {**follow, **_of_topic({**leader, "voter_directory_id": OTHER})}),
        (54, 1, _of_topic(end)),
    ]
