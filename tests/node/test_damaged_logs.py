"""A replica whose log is damaged, in a cluster where others have all of it."""

from pathlib import Path

from tests.node.embedded_cluster import append
from tests.support.replicated_topics import OVERRIDES, create_replicated, log_bytes, wait_for_isr
from tests.support.waiting import wait_for

from kvorum.storage.files import RealFileSystem
from kvorum.storage.small_files.offset_checkpoint_file import (
    RECOVERY_POINT_CHECKPOINT,
    OffsetCheckpointFile,
)
from kvorum.storage.topic_partition import TopicPartition
from kvorum.testing import Cluster

LEADER, FOLLOWER = 101, 102
TOPIC = "kept"


def stored_recovery_point(folder: Path) -> int:
    file = OffsetCheckpointFile(folder / RECOVERY_POINT_CHECKPOINT, RealFileSystem(), advice="")
    return file.read().get(TopicPartition(TOPIC, 0), 0)


def test_a_damaged_log_is_set_aside_and_fetched_again(tmp_path: Path) -> None:
    overrides = {
        **OVERRIDES,
        "kvorum.damaged.logs.set.aside": "true",
        "log.flush.offset.checkpoint.interval.ms": "50",
    }
    with Cluster(controllers=1, brokers=2, folder=tmp_path, overrides=overrides) as cluster:
        create_replicated(cluster, TOPIC, [LEADER, FOLLOWER], {"flush.messages": "1"})
        append(cluster, TOPIC, b"one")
        append(cluster, TOPIC, b"two")
        data = tmp_path / f"broker-{FOLLOWER}" / "data"
        wait_for(lambda: stored_recovery_point(data) == 2, "the follower's records are durable")
        cluster.kill(FOLLOWER)
        wait_for_isr(cluster, TOPIC, {LEADER})
        sound = log_bytes(tmp_path, LEADER, TOPIC)
        (file,) = data.glob(f"{TOPIC}-0/*.log")
        damaged = bytes([*sound[:-1], sound[-1] ^ 1])
        file.write_bytes(damaged)
        cluster.restart(FOLLOWER)
        wait_for_isr(cluster, TOPIC, {LEADER, FOLLOWER})
        assert log_bytes(tmp_path, FOLLOWER, TOPIC) == sound
        (aside,) = data.glob(f"{TOPIC}-0.*-stray/*.log")
        assert aside.read_bytes() == damaged
