"""The metadata image: the state of the cluster up to some offset, as one immutable value.

An image is made by folding records into an earlier one. Parts that a record does not touch are
shared, so keeping the committed image beside a pending one costs next to nothing, and dropping
changes that never committed means dropping a value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kvorum.metadata.errors import ReplayError
from kvorum.metadata.image_parts import ImageParts
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.replay import ImageEditor, fold_record
from kvorum.wire.primitives import Message


@dataclass(frozen=True, slots=True)
class MetadataImage(ImageParts):
    """The state of the cluster after the record at `last_offset`.

    Inside a metadata transaction the parts contain its records too, as the controller needs them.
    Code outside the controller uses `published`.
    """

    @property
    def published(self) -> MetadataImage:
        """The image as it was before the open transaction; itself where none is open."""
        if self.transaction is None:
            return self
        before = self.transaction.before
        assert isinstance(before, MetadataImage)
        return before

    @property
    def metadata_version(self) -> MetadataVersion:
        """The finalized metadata.version; `ReplayError` before the log names one."""
        version = self.features.metadata_version
        if version is None:
            raise ReplayError("the metadata log has no metadata.version record")
        return version

    def apply(self, message: Message, version: int, offset: int) -> MetadataImage:
        """Return the image after one more record, which is at `offset`."""
        return self.apply_all([(message, version, offset)])

    def apply_all(self, records: Iterable[tuple[Message, int, int]]) -> MetadataImage:
        """Return the image after `records` (message, version, offset), in their order.

        Raises `ReplayError` for a record that contradicts the state; the image itself is never
        half changed.
        """
        editor = ImageEditor(self)
        for message, _, offset in records:
            fold_record(editor, message, offset)
        image = editor.finish()
        assert isinstance(image, MetadataImage)
        return image
