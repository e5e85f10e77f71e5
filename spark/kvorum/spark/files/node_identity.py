"""The node whose disk a file was on: the meta.properties file next to the file, or above it."""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Container
from typing import Final, NamedTuple

from kvorum.spark.files.file_systems import Files
from kvorum.spark.files.log_file import LogFile
from kvorum.storage.errors import MetaPropertiesError, PropertiesFormatError
from kvorum.storage.small_files.meta_properties import META_PROPERTIES_FILE, decode_meta_properties

SIZE_BYTES_MAX: Final = 64 * 1024
_LOG: Final = logging.getLogger(__name__)


class Identity(NamedTuple):
    """A cluster's id and a node's; None where it is not known."""

    cluster_id: str | None = None
    node_id: int | None = None


NO_IDENTITY: Final = Identity()


class Identities:
    """The identities of the files below one directory.

    The nearest meta.properties counts, from the file's directory up to one level above `root`.
    `listed` has the names of all files below `root`, None where they are not known. What
    meta.properties does not contain is taken from `default`.
    """

    def __init__(
        self, files: Files, root: str, *, listed: Container[str] | None, default: Identity
    ) -> None:
        self._files = files
        self._highest = posixpath.dirname(root)
        self._listed = listed
        self._root = root
        self._default = default
        self._known: dict[str, Identity | None] = {}

    def identified(self, file: LogFile) -> LogFile:
        """Return the file with its node's identity."""
        directory: str = file.directory
        found = self._read(directory)
        while found is None and directory not in {self._highest, ""}:
            directory = posixpath.dirname(directory)
            found = self._read(directory)
        cluster_id, node_id = found or NO_IDENTITY
        return file._replace(
            cluster_id=self._default.cluster_id if cluster_id is None else cluster_id,
            node_id=self._default.node_id if node_id is None else node_id,
        )

    def _read(self, directory: str) -> Identity | None:
        if directory not in self._known:
            self._known[directory] = self._identity_in(directory)
        return self._known[directory]

    def _identity_in(self, directory: str) -> Identity | None:
        path = posixpath.join(directory, META_PROPERTIES_FILE)
        is_below = directory == self._root or directory.startswith(self._root + "/")
        if is_below and self._listed is not None and path not in self._listed:
            return None
        if directory.endswith(":"):
            # The end of the way up from a bucket: a scheme without a path.
            return None
        try:
            file = self._files.open(path)
        except OSError:
            # Above the root there need not be a readable directory, nor a bucket.
            return None
        try:
            properties = decode_meta_properties(file.read_at(0, SIZE_BYTES_MAX))
        except (OSError, MetaPropertiesError, PropertiesFormatError) as error:
            _LOG.warning("%s: not used: %s", path, error)
            return None
        finally:
            file.close()
        return Identity(properties.cluster_id, properties.node_id)
