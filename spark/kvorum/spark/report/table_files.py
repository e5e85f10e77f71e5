"""The place of the tables: a directory of this machine, or of any file system of fsspec."""

import posixpath
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import pyarrow as pa
import pyarrow.fs

from kvorum.log_files.errors import LogFilesError
from kvorum.log_files.file_systems import LOCAL_SCHEME, SCHEME_END, as_os_errors, remote_system
from kvorum.spark.errors import SparkSliceError

# The stubs of pyarrow do not know file systems.
_fs: Any = pyarrow.fs


class TablesError(SparkSliceError):
    """A directory without the tables, or with tables that cannot be read."""


class TableFiles:
    """The directories and files below one root; `system` is its file system, as pyarrow's."""

    def __init__(self, root: str, options: Mapping[str, Any]) -> None:
        """Take a path, and what fsspec gets for a path with a scheme; no file is read.

        Raises `TablesError` for an unknown scheme, a missing package, or options that do not fit.
        """
        self._root = root.rstrip("/") or root
        self._remote: Any = None
        if SCHEME_END not in root or root.startswith(LOCAL_SCHEME):
            self.system: Any = _fs.LocalFileSystem()
            self._path = self._root.removeprefix(LOCAL_SCHEME)
            return
        try:
            remote = remote_system(root, options)
        except LogFilesError as error:
            raise TablesError(str(error)) from error
        self._remote = remote.system
        self.forget_listings()
        self.system = _fs.PyFileSystem(_fs.FSSpecHandler(remote.system))
        self._path = str(remote.strip_protocol(root)).rstrip("/")

    def forget_listings(self) -> None:
        """Have directories listed again: fsspec may have a cache of what was in them."""
        if self._remote is not None:
            self._remote.invalidate_cache()

    def full_name(self, name: str) -> str:
        """Return a path below the root, or the root for "", as users write it."""
        return posixpath.join(self._root, name) if name else self._root

    def path(self, name: str) -> str:
        """Return a path below the root, or the root for "", as the file system has it."""
        return posixpath.join(self._path, name) if name else self._path

    def is_directory(self, name: str) -> bool:
        """Return whether there is such a directory; raises `TablesError`."""
        with self.errors_named(name, "cannot be listed"):
            found = self.system.get_file_info(self.path(name)).type
        return bool(found == _fs.FileType.Directory)

    def directories_in(self, name: str) -> list[str]:
        """Return the names of the directories in a directory; raises `TablesError`."""
        return self._names_in(name, _fs.FileType.Directory)

    def files_in(self, name: str) -> list[str]:
        """Return the names of the files in a directory; raises `TablesError`."""
        return self._names_in(name, _fs.FileType.File)

    def _names_in(self, name: str, kind: Any) -> list[str]:
        """Return the names of one kind, sorted; none where the directory is missing."""
        if not self.is_directory(name):
            return []
        with self.errors_named(name, "cannot be listed"):
            found = self.system.get_file_info(_fs.FileSelector(self.path(name)))
        return sorted(each.base_name for each in found if each.type == kind)

    @contextmanager
    def errors_named(self, name: str, problem: str) -> Generator[None]:
        """Turn errors of file systems and of pyarrow into `TablesError`, in one line."""
        try:
            # Clients of object stores raise errors of any class.
            with nullcontext() if self._remote is None else as_os_errors():
                yield
        except (pa.ArrowException, OSError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise TablesError(f"{self.full_name(name)}: {problem}: {reason}") from error
