"""The manifests of a table after a run: which files it consists of, cluster by cluster.

What a run adds of a cluster goes into one manifest, together with what the cluster's last ones hold
as long as they are small. Files that a run replaces are those of runs just before it, so no more
than the end of a cluster's list is read, whatever the number of its files.
"""

import errno
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from io import BytesIO
from typing import Any, Final, cast

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

from kvorum.spark.pipeline.layout import AddedFile, partition_values
from kvorum.spark.pipeline.output_files import OutputFiles

SMALL_MANIFEST_ENTRIES: Final = 1000
"""A manifest with fewer files is written again together with those of the next run."""
COMPRESSION: Final = "deflate"
_EPOCH: Final = date(1970, 1, 1)


@dataclass(slots=True)
class ManifestWriting:
    """Writes the manifests of one snapshot, with paths that begin with `prefix`."""

    io: FileIO
    table_root: str
    prefix: str
    schema: Schema
    spec: PartitionSpec
    snapshot_id: int
    written_count: int = 0

    def manifests(
        self, before: Iterable[ManifestFile], added: Iterable[AddedFile], removed: Iterable[str]
    ) -> list[ManifestFile]:
        """Return the manifests of the snapshot, the last ones first.

        `before` are those of the snapshot before; paths are relative to the table.
        """
        added_of: dict[str | None, list[AddedFile]] = defaultdict(list)
        removed_of: dict[str | None, set[str]] = defaultdict(set)
        for file in added:
            added_of[_cluster_of(file.path)].append(file)
        for path in removed:
            removed_of[_cluster_of(path)].add(f"{self.table_root}/{path}")
        manifests = list(before)
        for cluster_id in sorted({*added_of, *removed_of}, key=str):
            manifests = self._with_cluster(
                manifests, str(cluster_id), added_of[cluster_id], removed_of[cluster_id]
            )
        return manifests

    def _with_cluster(
        self,
        before: Sequence[ManifestFile],
        cluster_id: str,
        added: Sequence[AddedFile],
        removed: set[str],
    ) -> list[ManifestFile]:
        """Return the manifests with what changes of one cluster."""
        kept: list[ManifestFile] = []
        joined: list[ManifestEntry] = []
        is_last = True
        missing = set(removed)
        for manifest in before:
            if not (is_last or missing) or not _may_hold(manifest, cluster_id):
                kept.append(manifest)
                continue
            entries = manifest.fetch_manifest_entry(self.io)
            gone = {entry.data_file.file_path for entry in entries} & missing
            missing -= gone
            new = [_changed(entry, gone, self.snapshot_id) for entry in entries]
            if len(entries) < SMALL_MANIFEST_ENTRIES and (is_last or gone):
                joined += new
            else:
                kept.append(self._write(new) if gone else manifest)
            is_last = False
        joined += [self._added(file) for file in added]
        return [self._write(joined), *kept] if joined else kept

    def _added(self, file: AddedFile) -> ManifestEntry:
        values = partition_values(file.path)
        data_file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"{self.table_root}/{file.path}",
            file_format=FileFormat.PARQUET,
            partition=Record(*(_partition_value(each.name, values) for each in self.spec.fields)),
            record_count=file.row_count,
            file_size_in_bytes=file.size_bytes,
        )
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.ADDED, snapshot_id=self.snapshot_id, data_file=data_file
        )

    def _write(self, entries: Iterable[ManifestEntry]) -> ManifestFile:
        path = f"{self.prefix}-m{self.written_count}.avro"
        self.written_count += 1
        with write_manifest(
            format_version=2,
            spec=self.spec,
            schema=self.schema,
            output_file=self.io.new_output(path),
            snapshot_id=self.snapshot_id,
            avro_compression=COMPRESSION,
        ) as writer:
            for entry in entries:
                writer.add_entry(entry)
        return writer.to_manifest_file()


def _changed(entry: ManifestEntry, gone: set[str], snapshot_id: int) -> ManifestEntry:
    """Return the entry of a file that an earlier snapshot added, as the next one has it."""
    is_gone = entry.data_file.file_path in gone
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.DELETED if is_gone else ManifestEntryStatus.EXISTING,
        snapshot_id=snapshot_id if is_gone else entry.snapshot_id,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=entry.data_file,
    )


def _may_hold(manifest: ManifestFile, cluster_id: str) -> bool:
    """Return whether files of a cluster may be in a manifest, by the bounds of its partitions."""
    if manifest.content != ManifestContent.DATA or not manifest.partitions:
        return False
    bounds = manifest.partitions[0]
    if bounds.lower_bound is None or bounds.upper_bound is None:
        return False
    return bounds.lower_bound <= cluster_id.encode() <= bounds.upper_bound


def _cluster_of(path: str) -> str | None:
    return partition_values(path)["cluster_id"]


def _partition_value(name: str, values: Mapping[str, str | None]) -> Any:
    """Return the value of a directory in Iceberg's form: a date as its days since 1970."""
    value = values[name]
    if value is None or name != "day":
        return value
    return (date.fromisoformat(value) - _EPOCH).days


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
        return cast("InputStream", BytesIO(self._data()))

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
        return cast("OutputStream", _Buffer(self._write))

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
