"""Records as a range of a segment's file (Kafka's FileRecords): a read that copies no bytes yet."""

from kvorum.storage.errors import StorageError
from kvorum.storage.files import Descriptor, OpenFile


class TruncatedRecordsError(StorageError):
    """The file ends within the range: its log was truncated after the range was made."""


class FileRecords:
    """`len` bytes of a file from `position` on; the last batch among them may be cut off.

    The bytes can be read until the range is dropped, even if the segment is closed or its file
    deleted before: the range keeps the open file of the operating system.
    """

    __slots__ = ("_file", "_size", "descriptor", "position")

    def __init__(self, file: OpenFile, position: int, size: int) -> None:
        self.descriptor: Descriptor | None = file.shared_descriptor()
        """The open file for ``sendfile``; None for a file that is none of the system's."""
        self.position = position
        self._size = size
        self._file = file

    def __len__(self) -> int:
        return self._size

    def __bytes__(self) -> bytes:
        return self.read()

    def read(self, start: int = 0, size: int | None = None) -> bytes:
        """Return `size` bytes from `start` within the range on, by default all that follow.

        Raises OSError, and TruncatedRecordsError if there are fewer.
        """
        wanted = self._size - start if size is None else size
        position = self.position + start
        if self.descriptor is None:
            data = self._file.read_at(position, wanted)
        else:
            data = self.descriptor.read_at(position, wanted)
        if len(data) < wanted:
            raise TruncatedRecordsError(
                f"{len(data)} of {wanted} bytes are left at {position} of a log's file"
            )
        return data
