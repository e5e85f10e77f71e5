"""The ends of transactions that this broker coordinates, for those who wait for one of them."""

from kvorum.node.coroutines import Signal
from kvorum.node.runtime import Runtime


class EndedTransactions:
    """Reports the end of a transaction to the batches of the next one, which it holds up.

    Nothing is reported of an id that another broker coordinates.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._expected: dict[str, list[Signal]] = {}

    def expect(self, transactional_id: str) -> Signal:
        """Return a flag that is up from the next end of an id's transaction on.

        It is raised again at each end, until `forget`.
        """
        ended = Signal(self._runtime)
        self._expected.setdefault(transactional_id, []).append(ended)
        return ended

    def forget(self, transactional_id: str, ended: Signal) -> None:
        """Raise a flag no more."""
        expected = self._expected[transactional_id]
        expected.remove(ended)
        if not expected:
            del self._expected[transactional_id]

    def tell(self, transactional_id: str) -> None:
        """Raise the flags of all who expect the end of an id's transaction."""
        for ended in self._expected.get(transactional_id, ()):
            ended.set()
