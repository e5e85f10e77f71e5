"""The reason for which dead letters are not written."""


class DeadLetterQueueError(Exception):
    """Records do not come to their group's dead-letter queue; the text says why."""
