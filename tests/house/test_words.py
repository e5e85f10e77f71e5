"""Nothing in the project points at one machine or at one package index."""

import re

import pytest
from tests.support.source_tree import ROOT, tracked_files

TEXTS = {".py", ".md", ".toml", ".txt", ".json", ".java", ".yml", ".yaml", ".cfg", ".xml", ""}
SIZE_BYTES_MAX = 2_000_000
ALLOWED = {"tests/house/test_words.py", "LICENSE"}
HOME_FOLDER = re.compile(r"/(?:home|root|Users)/\w+/")
INDEX_HOST = re.compile(r"https?://[\w.-]*(?:maven|pypi|pythonhosted|npm|debian)[\w.-]*")


@pytest.mark.process
def test_no_path_of_a_machine_and_no_index_address() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in tracked_files()
        if path.suffix in TEXTS
        and str(path.relative_to(ROOT)) not in ALLOWED
        and path.stat().st_size < SIZE_BYTES_MAX
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1)
        if HOME_FOLDER.search(line) or INDEX_HOST.search(line)
    ]
    assert found == []
