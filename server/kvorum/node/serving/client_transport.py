"""The transport to a client, as connections use it: asyncio's, or TLS on top of that."""

from typing import Any, Protocol


class ClientTransport(Protocol):
    """The methods of asyncio's Transport that a connection needs."""

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Send bytes, now or when the system takes them."""
        ...

    def close(self) -> None:
        """Close once all is sent."""
        ...

    def abort(self) -> None:
        """Close at once."""
        ...

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return a fact about the connection, `default` for an unknown one."""
        ...

    def get_write_buffer_size(self) -> int:
        """Return how many bytes the system has not taken yet."""
        ...

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the number of unsent bytes from which on the protocol pauses."""
        ...

    def pause_reading(self) -> None:
        """Read nothing for now."""
        ...

    def resume_reading(self) -> None:
        """Read again."""
        ...

    def is_closing(self) -> bool:
        """Return whether the connection is closed, or will be in a moment."""
        ...
