"""The unclean ends of brokers, within what Kafka survives without a loss."""

from collections.abc import Mapping
from typing import NamedTuple

from kvorum.metadata.partition import PartitionRegistration
from kvorum.simulation.partitions.broker import Broker
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings


class _Unclean(NamedTuple):
    """The unclean end of a broker's incarnation, named by its broker epoch."""

    epoch: int
    is_power_lost: bool


class Budget:
    """Which brokers may end uncleanly now, so that Kafka still promises to lose nothing.

    With a minimum of two in-sync replicas, one broker may lose its unflushed records; until it is
    back in every ISR, no other broker may end uncleanly (KIP-966). A broker that is only killed
    loses nothing: any number of them may be killed. Who leads alone after an unclean election must
    not lose power before another broker is in sync.
    """

    def __init__(
        self, around: BrokerSurroundings, partitions: Mapping[int, PartitionRegistration]
    ) -> None:
        self._around = around
        self._partitions = partitions
        self._ends: dict[int, _Unclean] = {}

    def allows(self, broker: Broker, *, is_power_lost: bool) -> bool:
        """Return whether `broker` may end uncleanly now."""
        if is_power_lost and not (
            self._around.settings.may_lose_power and self.has_copies(broker.id)
        ):
            return False
        return not any(
            is_power_lost or end.is_power_lost
            for broker_id, end in self._ends.items()
            if broker_id != broker.id and not self._is_back(broker_id, end)
        )

    def has_copies(self, broker_id: int) -> bool:
        """Return whether others have what a broker has, also after an unclean election."""
        return not any(
            self._around.ledger.is_exempt(index) and {*partition.isr, *partition.elr} == {broker_id}
            for index, partition in self._partitions.items()
        )

    def take(self, broker: Broker, *, is_power_lost: bool) -> None:
        """Note that a broker ends uncleanly, or will do so at any moment."""
        before = self._ends.get(broker.id)
        if before is not None and not self._is_back(broker.id, before):
            # Its earlier losses are still missing, also where it had not registered again.
            is_power_lost = is_power_lost or before.is_power_lost
        self._ends[broker.id] = _Unclean(
            max(broker.epoch, self._registered_epoch(broker.id)), is_power_lost
        )

    def has_lost_records(self, broker_id: int) -> bool:
        """Return whether a broker may lack records of partitions in whose ISR it still is."""
        end = self._ends.get(broker_id)
        return end is not None and end.is_power_lost and not self._is_back(broker_id, end)

    def _registered_epoch(self, broker_id: int) -> int:
        broker = self._around.committed_image.cluster.brokers.get(broker_id)
        return -1 if broker is None else broker.epoch

    def _is_back(self, broker_id: int, end: _Unclean) -> bool:
        return self._registered_epoch(broker_id) > end.epoch and all(
            broker_id in partition.isr
            for partition in self._partitions.values()
            if broker_id in partition.replicas
        )
