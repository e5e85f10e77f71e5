"""The timeouts of a shard of transactions, and the keys of their timers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimedOutTransactions:
    """The transactions have to be looked through for those that are open for too long."""

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return "abort-timed-out-transactions"


@dataclass(frozen=True, slots=True)
class ExpiredTransactionalIds:
    """The ids have to be looked through for those that no producer has used for long."""

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return "remove-expired-transactional-ids"


@dataclass(frozen=True, slots=True)
class TimedOutTransaction:
    """A transaction is open for longer than its producer has asked for."""

    transactional_id: str

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return f"abort-{self.transactional_id}"


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """The outcome of a transaction is in the log; its markers follow once that is committed."""

    transactional_id: str

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return f"prepared-{self.transactional_id}"
