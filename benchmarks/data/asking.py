"""A connection that asks one thing after the other, without a client's own cost."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Final, Self, TypeVar

from benchmarks.data.ready_requests import framed

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_response_frame
from kvorum.wire.primitives import Message

START_S_MAX: Final = 60.0
RETRY_S: Final = 0.05
_NOT_THERE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
_SIZE: Final = struct.Struct(">i")
Response = TypeVar("Response", bound=Message)


class Connection:
    """A connection with one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def to(cls, servers: str) -> Self:
        host, _, port = servers.partition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def ask(self, request: Message, kind: type[Response], version: int) -> Response:
        self._writer.write(framed(request, version))
        (size,) = _SIZE.unpack(await self._reader.readexactly(_SIZE.size))
        frame = await self._reader.readexactly(size)
        _, response = decode_response_frame(frame, response_class=kind, version=version)
        return response

    def close(self) -> None:
        self._writer.close()


async def until_coordinated(ask: Callable[[], Awaitable[int]]) -> None:
    """Ask again while the coordinator is not there yet."""
    async with asyncio.timeout(START_S_MAX):
        # Only another answer shows that it is there.
        while (code := await ask()) in _NOT_THERE:  # noqa: ASYNC110 - see above
            await asyncio.sleep(RETRY_S)
    check(code)


def check(code: int) -> None:
    if code != ErrorCode.NONE:
        raise AssertionError(f"the broker answers {ErrorCode(code).name}")
