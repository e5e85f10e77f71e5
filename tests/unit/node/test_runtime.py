"""The life of a node's process: started, running, stopped or failed."""

import asyncio

import pytest

from kvorum.node.errors import NodeFailedError
from kvorum.node.runtime import run_until_stopped


class FailingNode:
    """A node that cannot continue as soon as it runs; `steps` is what it did."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self._is_open = True

    async def start(self) -> None:
        self.steps.append("started")

    async def stop(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        for step in ("connections", "logs"):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            self.steps.append(f"closed {step}")

    async def failed(self) -> NodeFailedError:
        return NodeFailedError("the disk is full")


def test_a_node_that_has_failed_closes_everything() -> None:
    """Once, and without being interrupted."""
    node = FailingNode()
    with pytest.raises(NodeFailedError, match="the disk is full"):
        asyncio.run(run_until_stopped(node))
    assert node.steps == ["started", "closed connections", "closed logs"]
