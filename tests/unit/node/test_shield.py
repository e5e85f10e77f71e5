"""Work that goes on when the request that began it is closed."""

import logging
from random import Random

import pytest

from kvorum.metadata.api import RequestError
from kvorum.node.coroutines import Promise, Task
from kvorum.node.errors import NotControllerError
from kvorum.node.shield import shield
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.wire.error_codes import ErrorCode

REFUSED = RequestError.with_default_message(ErrorCode.NOT_COORDINATOR)
OVERTHROWN = NotControllerError("another node leads the quorum")
BROKEN = ValueError("broken")


class Work:
    """A request whose work ends when its promise is settled."""

    def __init__(self) -> None:
        self._events = Events()
        runtime = SimulatedRuntime(
            self._events, NodeClock(self._events), Random(1), turn=lambda callback: callback()
        )
        self.done: list[str] = []
        self.answers: list[str | Exception] = []
        self._promise = Promise[str](runtime)
        self.request = Task(shield(runtime, self._change()), self.answers.append)

    async def _change(self) -> str:
        result = await self._promise.result()
        self.done.append(result)
        return result

    def end(self, result: str | Exception) -> None:
        self._promise.settle(result)
        while (callback := self._events.take_next(1e9)) is not None:
            callback()


@pytest.mark.parametrize("result", ["changed", REFUSED, BROKEN], ids=str)
def test_a_client_that_waits_gets_the_result_or_the_error(
    result: str | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    work = Work()
    work.end(result)
    assert work.answers == [result]
    assert not caplog.records


def test_what_a_request_has_begun_is_done_when_its_client_has_gone() -> None:
    work = Work()
    work.request.close()
    work.end("changed")
    assert work.done == ["changed"]
    assert not work.answers


@pytest.mark.parametrize(
    ("error", "is_logged"), [(BROKEN, True), (REFUSED, False), (OVERTHROWN, False)], ids=str
)
def test_an_error_without_a_client_is_logged_if_it_is_not_a_refusal(
    error: Exception, is_logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    work = Work()
    work.request.close()
    work.end(error)
    logged = [(one.levelno, one.exc_info[1]) for one in caplog.records if one.exc_info]
    assert logged == ([(logging.ERROR, error)] if is_logged else [])
