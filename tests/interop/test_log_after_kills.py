"""A log that a node left behind when it was killed, read by Kafka's own tool."""

from pathlib import Path

import pytest
from tests.support.kafka.tools import ToolRunner
from tests.support.killed_dev_node import kill_again_and_again

ROUNDS = 3
LOG = Path("data", "__cluster_metadata-0", "00000000000000000000.log")


@pytest.mark.slow
def test_kafka_dump_log_reads_what_a_killed_node_wrote(
    tmp_path: Path, kafka_tools: ToolRunner
) -> None:
    acknowledged, _ = kill_again_and_again(tmp_path, ROUNDS)
    dumped = kafka_tools.run(
        "kafka-dump-log", "--cluster-metadata-decoder", "--files", str(tmp_path / LOG)
    )
    assert dumped.exit_code == 0, dumped.stderr
    assert dumped.stderr == ""
    for name in acknowledged:
        assert dumped.stdout.count(f'"data":{{"name":"{name}",') == 1
