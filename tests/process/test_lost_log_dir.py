"""A node that loses one of two log directories goes on with the other one (KIP-112)."""

from pathlib import Path

import pytest
from tests.support.lost_log_dir import lose_the_disk, two_directories


@pytest.mark.slow
def test_a_directory_is_lost_while_producers_run(tmp_path: Path, disk: Path) -> None:
    node = two_directories(tmp_path / "node", disk)
    with node.process:
        lose_the_disk(node, disk)
