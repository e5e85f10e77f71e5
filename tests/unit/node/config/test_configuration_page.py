"""The page about configuration is current, and says something about every key in use."""

from tests.unit.node.config.configuration_page import PAGE, page


def test_the_page_is_what_the_tables_say() -> None:
    text = page()
    assert PAGE.read_text() == text
    assert "None" not in text
