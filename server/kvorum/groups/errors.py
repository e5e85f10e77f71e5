"""Errors of the group coordinator; requests are refused by `RequestError`.

GroupRecordError
├── DamagedGroupRecordError       bytes that are not the expected message, or of a later version
└── UnsupportedGroupRecordError   a record of a kind of group that this coordinator does not hold
"""

from __future__ import annotations


class GroupRecordError(Exception):
    """A record because of which a shard cannot be loaded."""


class DamagedGroupRecordError(GroupRecordError):
    """A key or value that cannot be read; the text names what is wrong with it."""


class UnsupportedGroupRecordError(GroupRecordError):
    """A record of a consumer, share or streams group."""

    def __init__(self, type_id: int) -> None:
        super().__init__(f"no support of groups with records of type {type_id}")
        self.type_id = type_id
