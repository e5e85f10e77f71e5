"""Members in processes of their own, which are struck in all ways while brokers are killed."""

import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from tests.interop.broker_cluster import BrokerCluster
from tests.interop.storms.storm_command import EVERYBODY
from tests.support.proxied_network import Network
from tests.support.waiting import PATIENCE_S, Threads

SESSION_S: Final = 6.0
"""The time after which a member that says nothing is out of its group."""
KILLS: Final = "kills"
PAUSES: Final = "pauses"
CUTS: Final = "cuts"
LEAVES: Final = "leaves"
KILLS_OF_BROKERS: Final = "kills of brokers"
BLOWS: Final = (KILLS, PAUSES, CUTS, LEAVES, KILLS_OF_BROKERS)
SILENT_S: Final = (0.5, 1.5 * SESSION_S)
"""Some pauses and cuts are shorter than a session, and some are longer."""
AWAY_S: Final = (0.1, 3.0)
_BETWEEN_BLOWS_S: Final = (0.2, 1.2)
_BETWEEN_KILLS_S: Final = (8.0, 20.0)
_DOWN_S: Final = (0.2, 2.0)


class StruckMember:
    """A process of a member that begins again whenever it has ended, until it is closed.

    `number` is the client id under which the network knows it, and each line of its output goes
    to `hear`.
    """

    def __init__(
        self, command: Sequence[str], number: int, network: Network, hear: Callable[[str], None]
    ) -> None:
        self._command = command
        self._number = number
        self._network = network
        self._hear = hear
        self._threads = Threads()
        self._process = self._start()

    def kill(self, away_s: float) -> None:
        """End the process as a crash does, and begin again after a while."""
        self._begin_again(away_s)

    def leave(self, away_s: float) -> None:
        """Have the member leave, and come back after a while."""
        self._end_input()
        self._process.wait(PATIENCE_S)
        self._begin_again(away_s)

    def pause(self, seconds: float) -> None:
        """Have the process stand still for a while."""
        self._process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._process.send_signal(signal.SIGCONT)

    def cut_off(self, seconds: float) -> None:
        """Have no brokers hear the member, nor it them, for a while."""
        self._network.cut_off(self._number)
        time.sleep(seconds)
        self._network.reconnect(self._number)

    def close(self) -> None:
        """End the process for good."""
        self._process.kill()
        self._process.wait()
        self._end_input()
        self._threads.join()

    def _begin_again(self, away_s: float) -> None:
        self.close()
        time.sleep(away_s)
        self._process = self._start()

    def _end_input(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._threads = Threads()
        self._threads.start(lambda: self._listen(process))
        return process

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self._hear(line)


class Strikes:
    """Blows at all members and kills of brokers, for so many seconds and so many of them."""

    def __init__(
        self,
        cluster: BrokerCluster,
        members: Sequence[StruckMember],
        *,
        seconds: float,
        blows_min: int,
    ) -> None:
        self._cluster = cluster
        self._members = members
        self._end = time.monotonic() + seconds
        self._blows_min = blows_min
        self.blows: Counter[str] = Counter()

    def __str__(self) -> str:
        return ", ".join(f"{self.blows[what]} {what}" for what in BLOWS)

    def run(self, random: Random) -> None:
        """Strike until it is over; all members and brokers run after that."""
        threads = Threads()
        for member in self._members:
            threads.start(self._strike, member, Random(random.random()))
        self._kill_brokers(random)
        threads.join()
        self._cluster.wait_for_brokers(*EVERYBODY)

    def _strike(self, member: StruckMember, random: Random) -> None:
        ways: dict[str, tuple[Callable[[float], None], tuple[float, float]]] = {
            KILLS: (member.kill, AWAY_S),
            PAUSES: (member.pause, SILENT_S),
            CUTS: (member.cut_off, SILENT_S),
            LEAVES: (member.leave, AWAY_S),
        }
        while time.monotonic() < self._end or self.blows.total() < self._blows_min:
            time.sleep(len(self._members) * random.uniform(*_BETWEEN_BLOWS_S))
            blow = random.choice(list(ways))
            strike, seconds = ways[blow]
            strike(random.uniform(*seconds))
            self.blows[blow] += 1

    def _kill_brokers(self, random: Random) -> None:
        """Kill one now and then; the next one whether or not this one has caught up by then."""
        while True:
            victim = self._cluster.brokers[random.choice(sorted(EVERYBODY))]
            victim.kill()
            time.sleep(random.uniform(*_DOWN_S))
            victim.start()
            self.blows[KILLS_OF_BROKERS] += 1
            if time.monotonic() > self._end:
                return
            time.sleep(random.uniform(*_BETWEEN_KILLS_S))
