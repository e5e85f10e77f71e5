"""The five source roots make one namespace package, and each part says that it is typed."""

import pytest
from tests.support.source_tree import ROOT, SOURCE_ROOTS


def test_no_source_root_closes_the_namespace() -> None:
    closing = [root for root in SOURCE_ROOTS if (ROOT / root / "kvorum" / "__init__.py").exists()]
    assert closing == [], "a kvorum/__init__.py hides the other source roots; remove it"


@pytest.mark.parametrize("root", SOURCE_ROOTS)
def test_each_part_is_marked_as_typed(root: str) -> None:
    folder = ROOT / root / "kvorum"
    parts = {path.relative_to(folder).parts[0] for path in folder.rglob("*.py")}
    assert parts
    assert [part for part in sorted(parts) if not (folder / part / "py.typed").exists()] == []
