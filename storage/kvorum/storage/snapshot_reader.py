"""Read a snapshot, and check that it is one: header first, footer last, every batch sound."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Protocol

from kvorum.storage.batch_header import HEADER_SIZE, BatchHeader, read_header
from kvorum.storage.errors import CorruptSnapshotError
from kvorum.storage.files import OpenFile
from kvorum.storage.names import OffsetAndEpoch
from kvorum.storage.segment_scan import BadBatchError, scan_batches
from kvorum.storage.snapshots import RawSnapshotReader, SnapshotStore
