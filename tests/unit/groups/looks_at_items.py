"""The items of timeline maps that are looked at, to be counted."""

from collections.abc import Iterator
from typing import Any

import pytest

from kvorum.coordinator.timeline import TimelineMap


def noted_looks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that gets every item which is gone through from now on."""
    looks: list[object] = []
    items = TimelineMap[Any, Any].items

    def counted(of: TimelineMap[Any, Any], epoch: int | None = None) -> Iterator[tuple[Any, Any]]:
        for item in items(of, epoch):
            looks.append(item)
            yield item

    monkeypatch.setattr(TimelineMap, "items", counted)
    return looks
