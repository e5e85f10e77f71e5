"""A server that answers frames as a test wants it, in the test's own event loop."""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final, Self

from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import API_SPECS
from kvorum.wire.messages.api_versions import ApiVersionsResponse

AnswerFrame = Callable[[bytes], Awaitable[bytes | None]]
"""Returns what to send, size and all: b"" leaves the client waiting, None hangs up."""
HOST = "127.0.0.1"
QUORUM_KEYS: Final = (
    ApiKey.FETCH,
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.FETCH_SNAPSHOT,
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.UPDATE_RAFT_VOTER,
)


class FrameServer:
    """Answers everybody who connects; as a context it listens at a free port, and is then gone."""

    def __init__(self, answer_frame: AnswerFrame) -> None:
        self.port = 0
        self._answer_frame = answer_frame
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def listen(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, HOST, port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        await self.break_connections()

    async def break_connections(self) -> None:
        """End every connection there is; new ones are taken as before."""
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with suppress(asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
                while True:
                    (size,) = struct.unpack(">i", await reader.readexactly(4))
                    answer = await self._answer_frame(await reader.readexactly(size))
                    if answer is None:
                        break
                    writer.write(answer)
                    await writer.drain()
        finally:
            self._connections.discard(task)
            writer.close()


def all_versions(keys: Iterable[int]) -> list[ApiVersionsResponse.ApiVersion]:
    """Return what a server says that serves these APIs in all versions."""
    specs = [API_SPECS[key] for key in keys]
    return [
        ApiVersionsResponse.ApiVersion(spec.key, spec.min_version, spec.max_version)
        for spec in specs
    ]
