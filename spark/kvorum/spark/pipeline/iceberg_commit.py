"""Tables in Iceberg's format: metadata beside the files of each table says which it consists of.

A run adds one snapshot to each table that it changed, by the published specification
(https://iceberg.apache.org/spec/, format version 2) and in the layout of the Hadoop catalog:

1. the manifests, and the list of them, have names that no reader knows yet;
2. ``metadata/v<version>.metadata.json`` is written unless it is there: that is the commit;
3. ``metadata/version-hint.text`` says which version is the last;
4. what only older versions refer to is removed.

A property of the table holds the number of the run, so that a run which is completed after a kill
adds no second snapshot. Only the last snapshot stays: the files that make up an earlier one are not
all there, and a history of every run would make each commit slower than the one before.

The Parquet files carry no field ids: the property `schema.name-mapping.default` of the table says
which column of a file is which field. Every field is optional, as in a reader's view of Parquet.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from types import MappingProxyType
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet
from pyiceberg.manifest import ManifestFile, write_manifest_list
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.metadata import TableMetadataV2, new_table_metadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AddSnapshotUpdate,
    RemoveSnapshotsUpdate,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
    update_table_metadata,
)
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DoubleType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestamptzType,
)

from kvorum.spark.arrow_types import TIMESTAMP
from kvorum.spark.errors import DamagedOutputError, PipelineError
from kvorum.spark.pipeline.iceberg_manifests import COMPRESSION, ManifestWriting, OutputFileIO
from kvorum.spark.pipeline.layout import ICEBERG_METADATA, AddedFile, TableChange, partition_values
from kvorum.spark.pipeline.output_files import OutputFiles

RUN_PROPERTY: Final = "kvorum-pipeline.run"
NAME_MAPPING: Final = "schema.name-mapping.default"
KEPT_VERSIONS: Final = "write.metadata.previous-versions-max"
VERSION_HINT: Final = "version-hint.text"
MANIFEST_SUFFIX: Final = ".avro"
# Other programs may write their version compressed.
_METADATA_NAME: Final = re.compile(r"v([0-9]+)(\.gz)?\.metadata\.json")
# The hints of pyarrow's module for Parquet are incomplete.
_PARQUET: Any = pyarrow.parquet

PARTITION_TYPES: Final[Mapping[str, PrimitiveType]] = MappingProxyType(
    {"cluster_id": StringType(), "day": DateType()}
)
PARTITION_FIELD_ID_MIN: Final = 1000
"""The specification's first id of a partition's field."""
# Iceberg has no integers of fewer than 32 bits.
_TYPES: Final[Mapping[Any, PrimitiveType]] = MappingProxyType(
    {
        pa.bool_(): BooleanType(),
        pa.int8(): IntegerType(),
        pa.int16(): IntegerType(),
        pa.int32(): IntegerType(),
        pa.int64(): LongType(),
        pa.float64(): DoubleType(),
        pa.string(): StringType(),
        pa.binary(): BinaryType(),
        TIMESTAMP: TimestamptzType(),
    }
)


def add_commit(files: OutputFiles, table_root: str, change: TableChange) -> None:
    """See `AddCommit`."""
    run, added = change.run, change.added
    table = _Table(files, table_root)
    versions = table.versions()
    last = max(versions, default=0)
    base = table.metadata(versions[last]) if versions else None
    if base is None or int(base.properties.get(RUN_PROPERTY, 0)) < run:
        metadata = base or table.new(added)
        updates = [*table.column_updates(metadata, added)]
        described = _updated(metadata, updates)
        updates += table.snapshot_updates(described, change)
        names = described.schema().name_mapping.model_dump_json()
        updates.append(SetPropertiesUpdate(updates={RUN_PROPERTY: str(run), NAME_MAPPING: names}))
        location = f"{table.directory}/{versions[last]}" if versions else None
        last += 1
        table.create(last, _updated(metadata, updates, location))
    files.write(f"{table.directory}/{VERSION_HINT}", str(last).encode())
    table.remove_unused(last)


class _Table:
    def __init__(self, files: OutputFiles, root: str) -> None:
        self._files = files
        self._io = OutputFileIO(files)
        self._root = root
        self.directory = f"{root}/{ICEBERG_METADATA}"

    def versions(self) -> dict[int, str]:
        """Return the names of the versions of the metadata."""
        found = (_METADATA_NAME.fullmatch(each) for each in self._files.names_in(self.directory))
        return {int(match[1]): match[0] for match in found if match}

    def metadata(self, name: str) -> TableMetadataV2:
        """Return one version; raises `PipelineError` for another version of the format."""
        path = f"{self.directory}/{name}"
        found = FromInputFile.table_metadata(self._io.new_input(path))
        if not isinstance(found, TableMetadataV2):
            raise PipelineError(
                f"{path}: another program has made this a table of Iceberg's format version "
                f"{found.format_version}, but runs write version 2: choose another directory"
            )
        return found

    def new(self, added: Sequence[AddedFile]) -> TableMetadataV2:
        """Return the metadata of a table without a snapshot."""
        if not added:
            raise DamagedOutputError(f"{self.directory}: the table's metadata are gone")
        partitions = list(partition_values(added[0].path))
        schema = table_schema(self._columns(added[0]), partitions, base=Schema(), last_id=0)
        created = new_table_metadata(
            schema,
            partition_spec(schema, partitions),
            UNSORTED_SORT_ORDER,
            self._root,
            {KEPT_VERSIONS: "1"},
        )
        assert isinstance(created, TableMetadataV2)
        return created

    def column_updates(
        self, metadata: TableMetadataV2, added: Sequence[AddedFile]
    ) -> Sequence[TableUpdate]:
        """Return what makes the columns of a run's first file those of the table."""
        if not added:
            return []
        partitions = list(partition_values(added[0].path))
        if [each.name for each in metadata.spec().fields] != partitions:
            raise PipelineError(
                f"{self._root}: another program has changed the table's partitions: "
                "choose another directory"
            )
        before = metadata.schema()
        columns = self._columns(added[0])
        schema = table_schema(columns, partitions, base=before, last_id=metadata.last_column_id)
        if schema == before:
            return []
        schema_id = max(each.schema_id for each in metadata.schemas) + 1
        return [
            AddSchemaUpdate(schema=Schema(*schema.fields, schema_id=schema_id)),
            SetCurrentSchemaUpdate.model_validate({"schema-id": schema_id}),
        ]

    def snapshot_updates(
        self, metadata: TableMetadataV2, change: TableChange
    ) -> Sequence[TableUpdate]:
        """Write a run's manifests; return what puts its snapshot in the place of those before."""
        before = metadata.current_snapshot()
        writing = ManifestWriting(
            io=self._io,
            table_root=self._root,
            prefix=f"{self.directory}/{uuid4()}",
            schema=metadata.schema(),
            spec=metadata.spec(),
            snapshot_id=metadata.new_snapshot_id(),
        )
        manifests = writing.manifests(
            before.manifests(self._io) if before else [], change.added, change.removed
        )
        snapshot = Snapshot.model_validate(
            {
                "snapshot-id": writing.snapshot_id,
                "manifest-list": f"{writing.prefix}-list.avro",
                "sequence-number": metadata.next_sequence_number(),
                # Readers refuse a history that goes back in time.
                "timestamp-ms": max(change.now_ms, metadata.last_updated_ms),
                "summary": _summary(manifests, writing.snapshot_id),
                "schema-id": metadata.current_schema_id,
            }
        )
        with write_manifest_list(
            format_version=2,
            output_file=self._io.new_output(snapshot.manifest_list),
            snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=None,
            sequence_number=snapshot.sequence_number,
            avro_compression=COMPRESSION,
        ) as writer:
            writer.add_manifests(manifests)
        return [
            AddSnapshotUpdate(snapshot=snapshot),
            SetSnapshotRefUpdate.model_validate(
                {
                    "ref-name": MAIN_BRANCH,
                    "type": SnapshotRefType.BRANCH,
                    "snapshot-id": snapshot.snapshot_id,
                }
            ),
            RemoveSnapshotsUpdate.model_validate(
                {"snapshot-ids": [each.snapshot_id for each in metadata.snapshots]}
            ),
        ]

    def create(self, version: int, metadata: TableMetadataV2) -> None:
        """Write a version; raises `PipelineError` where another program has written it."""
        path = f"{self.directory}/v{version}.metadata.json"
        if not self._files.create(path, metadata.model_dump_json(exclude_none=True).encode()):
            raise PipelineError(
                f"{path}: another program wrote to this table at the same moment; "
                "the next run completes this one"
            )

    def remove_unused(self, last: int) -> None:
        """Remove older metadata than a version names, and manifests that only those refer to.

        So goes, too, what a run that was killed had written before its commit.
        """
        names = self.versions()
        current = self.metadata(names[last])
        logged = {posixpath.basename(entry.metadata_file) for entry in current.metadata_log}
        used = {names[last], *logged.intersection(names.values())}
        unused = set(names.values()) - used
        for name in used:
            for snapshot in self.metadata(name).snapshots:
                manifests = snapshot.manifests(self._io)
                paths = (snapshot.manifest_list, *(each.manifest_path for each in manifests))
                used = used.union(map(posixpath.basename, paths))
        manifests_found = self._files.names_in(self.directory)
        unused |= {name for name in manifests_found if name.endswith(MANIFEST_SUFFIX)} - used
        for name in sorted(unused):
            self._files.remove(f"{self.directory}/{name}")

    def _columns(self, file: AddedFile) -> Any:
        with self._files.open(f"{self._root}/{file.path}") as opened:
            return _PARQUET.read_schema(opened)


def _updated(
    metadata: TableMetadataV2, updates: Iterable[TableUpdate], location: str | None = None
) -> TableMetadataV2:
    """Return changed metadata, which name those that were at `location` as the version before."""
    changed = update_table_metadata(metadata, tuple(updates), metadata_location=location)
    assert isinstance(changed, TableMetadataV2)
    return changed


def _summary(manifests: Iterable[ManifestFile], snapshot_id: int) -> Summary:
    """Return what a snapshot changed, and how much there is of its table."""
    counts: Counter[str] = Counter()
    for each in manifests:
        if each.added_snapshot_id == snapshot_id:
            counts["added-data-files"] += each.added_files_count or 0
            counts["added-records"] += each.added_rows_count or 0
            counts["deleted-data-files"] += each.deleted_files_count or 0
            counts["deleted-records"] += each.deleted_rows_count or 0
        counts["total-data-files"] += (each.added_files_count or 0) + (
            each.existing_files_count or 0
        )
        counts["total-records"] += (each.added_rows_count or 0) + (each.existing_rows_count or 0)
    operation = Operation.OVERWRITE if counts["deleted-data-files"] else Operation.APPEND
    return Summary(operation, **{name: str(count) for name, count in counts.items()})


def table_schema(
    columns: Iterable[Any], partitions: Iterable[str], *, base: Schema, last_id: int
) -> Schema:
    """Return the columns of a file, `columns`, and those of its directories as a table's schema.

    A field that is in `base` with the same name and type keeps its id; any other gets one above
    `last_id`, the highest that the table ever had.
    """
    ids = _Ids(base, last_id)
    fields = [_field(ids, field.name, field.name, field.type) for field in columns]
    for name in partitions:
        kind = PARTITION_TYPES[name]
        fields.append(NestedField(ids.of(name, kind), name, kind, required=False))
    return Schema(*fields, schema_id=base.schema_id)


def partition_spec(schema: Schema, partitions: Iterable[str]) -> PartitionSpec:
    """Return the partitions by the values of directories."""
    fields = [
        PartitionField(schema.find_field(name).field_id, field_id, IdentityTransform(), name)
        for field_id, name in enumerate(partitions, PARTITION_FIELD_ID_MIN)
    ]
    return PartitionSpec(*fields)


class _Ids:
    def __init__(self, base: Schema, last_id: int) -> None:
        self._known = {name: base.find_field(name) for name in base.column_names}
        self._new: Iterator[int] = count(last_id + 1)

    def of(self, path: str, kind: IcebergType) -> int:
        """Return the id of a field; `path` has the names of those around it, too."""
        known = self._known.get(path)
        is_same = known is not None and (
            known.field_type == kind if kind.is_primitive else type(known.field_type) is type(kind)
        )
        return known.field_id if known is not None and is_same else next(self._new)


def _field(ids: _Ids, path: str, name: str, kind: Any) -> NestedField:
    found = _type(ids, path, kind)
    return NestedField(ids.of(path, found), name, found, required=False)


def _type(ids: _Ids, path: str, kind: Any) -> IcebergType:
    if pa.types.is_struct(kind):
        struct: Any = kind
        inner = (struct.field(index) for index in range(struct.num_fields))
        return StructType(
            *(_field(ids, f"{path}.{each.name}", each.name, each.type) for each in inner)
        )
    if pa.types.is_list(kind):
        element = _field(ids, f"{path}.element", "element", kind.value_type)
        return ListType(element.field_id, element.field_type, element_required=False)
    return _TYPES[kind]
