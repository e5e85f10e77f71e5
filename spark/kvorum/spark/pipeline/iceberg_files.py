"""The files of an output as pyiceberg reads and writes them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from io import BytesIO
from typing import Any

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream

from kvorum.spark.pipeline.output_files import OutputFiles


class OutputFileIO(FileIO):
    """Files of an output; each is written whole when its stream is closed."""

    def __init__(self, files: OutputFiles) -> None:
        super().__init__()
        self._files = files

    def new_input(self, location: str) -> InputFile:
        """Return a file to read."""
        return _Input(self._files, location)

    def new_output(self, location: str) -> OutputFile:
        """Return a file to write."""
        return _Output(self._files, location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Remove a file."""
        self._files.remove(location if isinstance(location, str) else location.location)


class _Input(InputFile):
    """A file of metadata: small enough to be read at once."""

    def __init__(self, files: OutputFiles, location: str) -> None:
        super().__init__(location)
        self._files = files

    def __len__(self) -> int:
        return len(self._data())

    def exists(self) -> bool:
        return self._files.exists(self.location)

    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002, FBT - pyiceberg's own
        stream: Any = BytesIO(self._data())
        opened: InputStream = stream
        return opened

    def _data(self) -> bytes:
        data = self._files.read(self.location)
        if data is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.location)
        return data


class _Output(OutputFile):
    def __init__(self, files: OutputFiles, location: str) -> None:
        super().__init__(location)
        self._files = files
        self._size_bytes = 0

    def __len__(self) -> int:
        return self._size_bytes

    def exists(self) -> bool:
        return self._files.exists(self.location)

    def to_input_file(self) -> InputFile:
        return _Input(self._files, self.location)

    def create(self, overwrite: bool = False) -> OutputStream:  # noqa: ARG002, FBT - pyiceberg's own
        stream: Any = _Buffer(self._write)
        created: OutputStream = stream
        return created

    def _write(self, data: bytes) -> None:
        self._files.write(self.location, data)
        self._size_bytes = len(data)


class _Buffer(BytesIO):
    """The bytes for a file, until it is closed."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._write = write

    def close(self) -> None:
        if self.closed:
            return
        data = self.getvalue()
        # Closed first, so that the garbage collector does not try a failed write again.
        super().close()
        self._write(data)
