"""A page as a browser would read it: its elements, links, ids and visible text."""

import re
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "hr"}


@dataclass
class Page:
    tags: Counter[str] = field(default_factory=Counter[str])
    ids: list[str] = field(default_factory=list[str])
    references: list[str] = field(default_factory=list[str])
    labelled_by: list[str] = field(default_factory=list[str])
    text: str = ""


class PageReader(HTMLParser):
    """Reads one page, and checks that elements end in the order in which they began."""

    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        page = self.page
        page.tags[tag] += 1
        if tag not in VOID:
            self._open.append(tag)
        for name, value in attrs:
            if name == "id":
                page.ids.append(value or "")
            if name in {"href", "src", "srcset", "action", "xlink:href"}:
                page.references.append(value or "")
            if name == "aria-labelledby":
                page.labelled_by.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.page.text += data

    def close(self) -> None:
        super().close()
        assert self._open == []


def read_page(html: str) -> Page:
    reader = PageReader()
    reader.feed(html)
    reader.close()
    return reader.page


def clusters_in(index: str) -> list[str]:
    """Return the clusters that an index links to, in its order."""
    return re.findall(r'href="cluster-(\w+)\.html"', index)
