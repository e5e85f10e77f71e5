"""Reading whole small files, with a finding where that fails."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kvorum.inspection.layouts.text_files import TextLayout
from kvorum.inspection.log_check.findings import Findings, Rule
from kvorum.spark.files.file_systems import LocalFiles

SIZE_MAX: Final = 64 * 1024 * 1024
"""More than any small file has: Kafka sets 10 MiB aside for an index."""


def read_whole(path: Path, findings: Findings) -> bytes | None:
    """Return the bytes of a file; None, with a finding, where it cannot be read."""
    findings.note_file(path)
    try:
        file = LocalFiles().open(str(path))
        try:
            return file.read_at(0, min(file.size, SIZE_MAX)) if file.size else b""
        finally:
            file.close()
    except OSError as error:
        findings.unreadable(path, error)
        return None


def read_text(
    path: Path, layout: TextLayout, findings: Findings, rule: Rule = Rule.FILE_FORM
) -> Mapping[str, str] | None:
    """Return the fields of a text file; None, with a finding, where it is not in its form."""
    data = read_whole(path, findings)
    if data is None:
        return None
    fields, problem = layout(data)
    if problem is not None:
        findings.add(rule, path, problem.text, position=problem.position)
        return None
    return {field.path: str(field.value) for field in fields}
