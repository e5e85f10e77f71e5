"""Where the batches of a log come from (Kafka's AppendOrigin)."""

from __future__ import annotations

from enum import Enum


class AppendOrigin(Enum):
    """The writer of a batch: only clients are held to the rules of producers.

    What comes by replication is not checked: the leader that took the batch has decided.
    """

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"
