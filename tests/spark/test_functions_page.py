"""docs/spark/functions.md lists the columns of each function, with their types, in order."""

import re

from tests.support.source_tree import ROOT

from kvorum.spark.functions import FUNCTIONS
from kvorum.spark.functions.arrow_structs import spark_struct

ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \|", re.MULTILINE)
NESTED = re.compile(r"(?<=\w):(?=\w)|,(?=\w)")


def spaced(type_text: str) -> str:
    """Write Spark's short text of a type, struct<a:int,b:int>, as SQL does."""
    return NESTED.sub(lambda found: " " if found[0] == ":" else ", ", type_text)


def test_the_page_lists_every_column_with_its_type() -> None:
    page = (ROOT / "docs" / "spark" / "functions.md").read_text(encoding="utf-8")
    sections = {
        section.partition("\n")[0]: [(name, kind) for name, kind in ROW.findall(section)]
        for section in page.partition("\n## Columns\n")[2].split("\n### ")[1:]
    }
    assert sections == {
        function.name: [
            (field.name, spaced(field.dataType.simpleString()))
            for field in spark_struct(function.columns)
        ]
        for function in FUNCTIONS
    }
