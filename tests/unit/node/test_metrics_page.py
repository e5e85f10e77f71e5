"""The page about metrics is the one that the catalogue makes."""

from tests.unit.node.metrics_page import PAGE, page


def test_the_page_is_as_it_would_be_written() -> None:
    assert PAGE.read_text() == page(), "run python -m tests.unit.node.metrics_page"
