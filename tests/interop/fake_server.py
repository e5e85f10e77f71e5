"""A fake node that tools of both kinds are run beside."""

import asyncio

from tests.support.fake_node import Answer, FakeNode
from tests.support.waiting import Threads

from kvorum.wire.primitives import Message


class FakeServer:
    """A FakeNode with a loop and a thread of its own, so that tools can be run beside it."""

    def __init__(self, **answers: Answer) -> None:
        self.node = FakeNode(**answers)
        self._loop = asyncio.new_event_loop()
        self._threads = Threads()
        self._threads.start(self._loop.run_forever)
        self._run(self.node.__aenter__())

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.node.port}"

    def answer(self, **answers: Message | None) -> None:
        """Answer these requests so from now on; None hangs up."""
        for name, answer in answers.items():
            self.node.answer(name, _always(answer))

    def close(self) -> None:
        self._run(self.node.__aexit__())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._threads.join()
        self._loop.close()

    def _run(self, coroutine: object) -> None:
        assert asyncio.iscoroutine(coroutine)
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)


def _always(answer: Message | None) -> Answer:
    return lambda _: answer
