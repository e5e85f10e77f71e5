"""The leader as a follower asks it: each request waits until a test answers it."""

from kvorum.node.coroutines import Promise
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse


def raise_error(result: Exception | None) -> None:
    if result is not None:
        raise result


class WaitingLeader:
    """A leader that has been asked, and whose last request is answered by `settle`."""

    fetch_version = 18

    def __init__(self, runtime: SimulatedRuntime) -> None:
        self.asked: list[FetchRequest] = []
        self._runtime = runtime
        self._answer: Promise[FetchResponse] = Promise(runtime)

    async def connect(self) -> None: ...

    async def fetch(self, request: FetchRequest, _: int) -> FetchResponse:
        self.asked.append(request)
        self._answer = Promise(self._runtime)
        return await self._answer.result()

    def settle(self, response: FetchResponse) -> None:
        """Answer the last request."""
        self._answer.settle(response)
