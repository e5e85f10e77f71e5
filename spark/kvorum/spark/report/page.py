"""The frame of every page: head, style and footer, without anything from elsewhere."""

from __future__ import annotations

from importlib.resources import files

from kvorum.spark.report.markup import Content, Markup, element


def page(title: str, header: Markup, *content: Content) -> str:
    """Return a whole document."""
    style = files("kvorum.spark.report").joinpath("report.css").read_text("utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title} - Kafka metadata report"),
        element("style", Markup(style)),
    )
    footer = element(
        "footer", element("p", "Made by kvorum report from tables of kvorum pipeline.")
    )
    body = element("body", header, element("main", *content), footer)
    return f"<!doctype html>\n{element('html', head, body, lang='en').html}\n"
