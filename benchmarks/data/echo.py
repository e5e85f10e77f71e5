"""`python -m benchmarks.data.echo`: a server that sends each frame back as it came.

It does what no server in this language can do without: asyncio reads and writes, in the event loop
that a node has, and frames are cut out of what was read. So it is the floor of a node's requests.
It prints its port, and ends with its standard input.
"""

import asyncio
import struct
import sys
from typing import Final, cast

from kvorum.node.process import run_in_loop

_SIZE: Final = struct.Struct(">i")


class _Echo(asyncio.Protocol):
    def __init__(self) -> None:
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        while len(buffer) >= _SIZE.size:
            (size,) = _SIZE.unpack_from(buffer)
            end = _SIZE.size + size
            if len(buffer) < end:
                return
            frame = bytes(memoryview(buffer)[:end])
            del buffer[:end]
            assert self._transport is not None
            self._transport.write(frame)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Echo, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    run_in_loop(_serve())
