"""The first failure of a server, after which the server ends."""

import asyncio

from kvorum.node.errors import NodeFailedError


class ServerFault:
    """The reason why a server cannot continue; later failures are ignored."""

    def __init__(self) -> None:
        self._error: NodeFailedError | None = None
        self._has_failed = asyncio.Event()

    @property
    def error(self) -> NodeFailedError | None:
        """The reason why the server cannot continue, None while it can."""
        return self._error

    def note(self, error: Exception) -> None:
        """Record that `error` ended a part that the server needs."""
        if self._error is None:
            self._error = NodeFailedError(str(error))
            self._has_failed.set()

    async def wait(self) -> NodeFailedError:
        """Wait for the first failure and return it."""
        await self._has_failed.wait()
        assert self._error is not None
        return self._error
