"""Errors that are raised while records of internal topics are decoded.

InternalTopicError
├── UnknownRecordTypeError   a key whose number of the type is not known
└── DamagedRecordError       bytes that are not the expected message, or are one of another version
"""


class InternalTopicError(Exception):
    """The base class of the errors that this package raises."""


class UnknownRecordTypeError(InternalTopicError):
    """A type of record that Kafka's reference release does not have in this topic."""

    def __init__(self, type_id: int) -> None:
        super().__init__(f"unknown record type {type_id}")
        self.type_id = type_id


class DamagedRecordError(InternalTopicError):
    """A key or a value that cannot be read; the text names the message and the place in it."""
