"""A quorum of our controllers that reach each other through proxies."""

import signal
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

from tests.support.node import Node
from tests.support.node_process import Ended
from tests.support.proxied_network import Network
from tests.support.quorum.quorum import Quorum

# Quick, and still slow enough for a machine that does other things as well.
TIMES: Final = {
    "controller.quorum.election.timeout.ms": "300",
    "controller.quorum.election.backoff.max.ms": "300",
    "controller.quorum.fetch.timeout.ms": "800",
    "controller.quorum.request.timeout.ms": "800",
}


class ProxiedQuorum(Quorum):
    """So many controllers with a network between them; as a context they run, but for `absent`.

    The `observers` of a dynamic quorum are controllers that are no voters at first. Clients ask a
    member past its proxy.
    """

    def __init__(
        self,
        folder: Path,
        count: int,
        *,
        is_dynamic: bool,
        settings: Mapping[str, str] = MappingProxyType({}),
        absent: Collection[int] = (),
        observers: Collection[int] = (),
    ) -> None:
        ids = range(1, count + 1)
        self.network = Network(ids)
        self._absent = {*absent}
        self._voters = {*ids} - {*observers} if is_dynamic else None
        self._paused: set[int] = set()
        own = {
            "process.roles": "controller",
            # There are no records but those that a test asks for.
            "metadata.max.idle.interval.ms": "0",
            # A played broker is never fenced.
            "broker.session.timeout.ms": "3600000",
            **TIMES,
        }
        super().__init__(
            Node(
                folder / str(node_id),
                {**own, "advertised.listeners": f"CONTROLLER://{self.advertised(node_id)}"},
                node_id=node_id,
            )
            for node_id in ids
        )
        self.configure({**({} if is_dynamic else self.static_voters(*ids)), **settings})

    def __enter__(self) -> Self:
        self.network.__enter__()
        try:
            self.form(self._voters)
            self.start(*(self.members.keys() - self._absent))
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.network.__exit__(*error)

    @property
    def majority(self) -> int:
        return len(self.members) // 2 + 1

    def advertised(self, node_id: int) -> str:
        """Return where the others ask a member: its proxy."""
        return f"127.0.0.1:{self.network.ports[node_id]}"

    def start(self, *node_ids: int) -> None:
        """Start some members, all of them if none is named; return before they take part."""
        for node_id in node_ids or self.members:
            self.network.listen(node_id, self.members[node_id].controller_port)
            super().start(node_id)

    def kill(self, *node_ids: int) -> None:
        for node_id in node_ids:
            # Its port is closed at the moment when its connections break.
            self.network.refuse(node_id)
            super().kill(node_id)
            self._paused.discard(node_id)

    def stop(self, node_id: int) -> Ended:
        self.members[node_id].process.send(signal.SIGTERM)
        return self.wait_for_end(node_id)

    def wait_for_end(self, node_id: int) -> Ended:
        """Return how a member ended that ends by itself."""
        ended = self.members[node_id].process.wait()
        self.network.refuse(node_id)
        return ended

    def pause(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.members[node_id].process.send(signal.SIGSTOP)
            self._paused.add(node_id)

    def resume(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.members[node_id].process.send(signal.SIGCONT)
            self._paused.discard(node_id)

    def kill_all_at_once(self) -> None:
        """End all of them before one can act on the end of another."""
        self.pause(*self.members)
        self.kill(*self.members)

    def _running(self) -> list[Node]:
        return [one for one in super()._running() if one.node_id not in self._paused]
