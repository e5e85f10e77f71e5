"""The first failure of a server, after which the server ends."""

import asyncio

from kvorum.node.errors import NodeFailedError


class ServerFault:
    """The reason why a server cannot continue; later failures are ignored."""

    def __init__(self) -> None:
        self.error: NodeFailedError | None = None
        """The reason, None while the server can continue."""
        self._has_failed = asyncio.Event()

    def note(self, error: Exception) -> None:
        """Record that `error` ended a part that the server needs."""
        if self.error is None:
            self.error = NodeFailedError(str(error))
            self._has_failed.set()

    async def wait(self) -> NodeFailedError:
        """Wait for the first failure and return it."""
        await self._has_failed.wait()
        assert self.error is not None
        return self.error
