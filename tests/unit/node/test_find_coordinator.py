"""FindCoordinator for many keys, whose topic is not there."""

from random import Random
from types import SimpleNamespace
from typing import Any, cast

from kvorum.coordinator.coordinator_type import CoordinatorType
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.standard_authorizer import UNRESTRICTED
from kvorum.node.coroutines import Promise, Task
from kvorum.node.handlers import find_coordinator
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.primitives import Message

KEYS = ["a", "b", "c"]


class Broker:
    """A broker that waits for a topic which cannot be made now."""

    def __init__(self) -> None:
        self._events = Events()
        self.runtime = SimulatedRuntime(
            self._events, NodeClock(self._events), Random(1), turn=lambda callback: callback()
        )
        self.loader = SimpleNamespace(published=MetadataImage())
        self.groups = SimpleNamespace(runtime=self)
        self.topic_creator = self
        self.waits: list[Promise[None]] = []

    def partition_for(self, _: str) -> int:
        """Return the partition of every key."""
        return 0

    async def create_internal(self, _: str) -> None:
        self.waits.append(Promise(self.runtime))
        await self.waits[-1].result()

    def give_up(self) -> None:
        """End all waits."""
        for wait in self.waits:
            wait.settle(None)
        while (callback := self._events.take_next(1e9)) is not None:
            callback()


def test_many_keys_wait_together_for_their_topic() -> None:
    broker = Broker()
    body = FindCoordinatorRequest("", CoordinatorType.GROUP.value, KEYS)
    request = cast(
        "IncomingRequest[FindCoordinatorRequest]",
        SimpleNamespace(body=body, version=6, access=UNRESTRICTED, listener="PLAINTEXT"),
    )
    answers: list[Message | Exception] = []
    way: Any = find_coordinator.answer(request, cast("BrokerServices", broker))
    Task(way, answers.append)
    assert len(broker.waits) == len(KEYS)
    broker.give_up()
    (answer,) = answers
    assert isinstance(answer, FindCoordinatorResponse)
    found = [(one.key, one.error_code) for one in answer.coordinators]
    assert found == [(key, ErrorCode.COORDINATOR_NOT_AVAILABLE) for key in KEYS]
