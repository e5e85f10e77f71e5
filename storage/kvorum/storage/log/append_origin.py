"""The writer of a batch: a client, a coordinator, or replication (Kafka's AppendOrigin)."""

from enum import Enum


class AppendOrigin(Enum):
    """The writer of a batch: only clients are held to the rules of producers.

    What comes by replication is not checked: the leader that took the batch has decided.
    """

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"
