"""Charts as SVG that stretches to the width of the page, with all text outside of it in HTML.

A plot is `PLOT_WIDTH` units wide, which stand for the window of time. A lane is a plot with its
label and its value; lanes below each other have one axis of time.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from kvorum.spark.report.markup import Markup, element
from kvorum.spark.report.rows import Int64s
from kvorum.spark.report.time_window import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, TimeWindow

PLOT_WIDTH: Final = 1000
SPAN_WIDTH_MIN: Final = 3
"""Shorter spans would not be seen on a phone."""

TICKS_MAX: Final = 8
_TICK_STEPS_MS: Final = (
    *(each * SECOND_MS for each in (1, 5, 15, 30)),
    *(each * MINUTE_MS for each in (1, 5, 15, 30)),
    *(each * HOUR_MS for each in (1, 3, 6, 12)),
    *(each * DAY_MS for each in (1, 2, 7, 14, 28, 91, 182, 364)),
)
_LAST_LABEL_SHARE: Final = 0.93
"""A label that begins further right would not fit."""


def lane(label: Markup | str, plot: Markup, value: Markup | str, *, class_: str) -> Markup:
    """Return one line of charts: label, plot and the value at the window's end."""
    return element(
        "div",
        element("div", label, class_="label"),
        plot,
        element("div", value, class_="value"),
        class_=f"lane {class_}",
    )


def plot(title: str, window: TimeWindow, height: int, shapes: Iterable[Markup]) -> Markup:
    """Return a plot of `height` units with `title` as its text for readers who do not see it."""
    ticks = (_x(window, time) for time in _ticks(window))
    return element(
        "svg",
        element("title", title),
        [element("line", x1=x, x2=x, y1=0, y2=height, class_="grid") for x in ticks],
        shapes,
        class_="plot",
        viewBox=f"0 0 {PLOT_WIDTH} {height}",
        preserveAspectRatio="none",
        height=height,
        role="img",
    )


def step_area(
    values: Iterable[Any], edges_ms: Int64s, window: TimeWindow, *, height: int, highest: float
) -> Iterator[Markup]:
    """Yield the area below a value for each step, nothing where all are 0."""
    scale = height / highest if highest else 0.0
    tops = [height - round(float(value) * scale, 1) for value in values]
    if all(top == height for top in tops):
        return
    xs = [_x(window, int(edge)) for edge in edges_ms]
    parts = [f"M{xs[0]} {height}"]
    before: float = height
    for index, top in enumerate(tops):
        if top != before:
            parts.append(f"H{xs[index]}V{top:g}")
            before = top
    parts.append(f"H{xs[-1]}V{height}Z")
    yield element("path", d="".join(parts), class_="area")


def span(
    window: TimeWindow,
    begin_ms: int,
    end_ms: int,
    *,
    top: int,
    height: int,
    class_: str,
    title: str | None = None,
) -> Markup:
    """Return a bar from one time to another, never narrower than `SPAN_WIDTH_MIN`."""
    begin, end = _x(window, begin_ms), _x(window, end_ms)
    width = max(end - begin, SPAN_WIDTH_MIN)
    return element(
        "rect",
        None if title is None else element("title", title),
        x=round(min(begin, PLOT_WIDTH - width), 1),
        y=top,
        width=round(width, 1),
        height=height,
        class_=class_,
    )


def bar(share: float, *, mark: float | None = None) -> Markup:
    """Return a horizontal bar of a share of the width, with a mark at another share."""
    return element(
        "svg",
        element("rect", x=0, y=2, width=round(share * 100, 1), height=8, class_="fill"),
        element("rect", x=round(min(mark, 0.99) * 100, 1), y=0, width=1, height=12, class_="mark")
        if mark is not None
        else None,
        class_="bar",
        viewBox="0 0 100 12",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def time_axis(window: TimeWindow) -> Markup:
    """Return the labels of the axis of time, as a lane without a plot."""
    labels = [
        element("span", text, style=f"left:{window.share(time) * 100:.2f}%")
        for time, text in _labels(window)
        if window.share(time) <= _LAST_LABEL_SHARE
    ]
    return lane("", element("div", labels, class_="axis"), "", class_="times")


def _labels(window: TimeWindow) -> Iterator[tuple[int, str]]:
    for time in _ticks(window):
        at = datetime.fromtimestamp(time / 1000, UTC)
        if time % DAY_MS == 0:
            yield time, at.strftime("%a %d %b")
        else:
            yield time, at.strftime("%H:%M:%S" if window.length_ms < 5 * MINUTE_MS else "%H:%M")


def _ticks(window: TimeWindow) -> Sequence[int]:
    step = next(
        (each for each in _TICK_STEPS_MS if window.length_ms <= each * TICKS_MAX),
        window.length_ms // TICKS_MAX,
    )
    first = -(-window.begin_ms // step) * step
    return range(first, window.end_ms, step)


def _x(window: TimeWindow, time_ms: int) -> float:
    return round(window.share(time_ms) * PLOT_WIDTH, 1)
