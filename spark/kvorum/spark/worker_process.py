"""The overhead of Spark's Python processes around each piece of work, kept low.

Before each task or step of planning such a process forgets where it looked for modules, and so
`zipimport` reads the directory of an archive again: once for the archive, and once for each package
in it from which something was imported. pyspark itself is in an archive, and has about fifteen.
Behind each task the process collects garbage, which visits every object of every imported module.
The two take longer than a small task does.
"""

import gc
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final
from zipimport import zipimporter

IS_REUSED: Final = "SPARK_REUSE_WORKER"
"""The variable that Spark sets for Python processes that work on one task after another."""

YOUNG_OBJECTS_MAX: Final = 50_000
"""The number of new objects that set off a collection of garbage while a log is folded; Python's
own 700 are made by a few records. None of the fold's objects forms garbage in cycles."""


def prepare_for_more_tasks() -> None:
    """Make the next pieces of work in this process begin and end sooner; to be called in each.

    Does nothing in processes that are not Spark's, nor in those that end with their task.
    """
    if IS_REUSED not in os.environ:
        return
    forget_packages_in_archives()
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()


def forget_packages_in_archives() -> None:
    """Drop the finders of packages inside of zip archives from Python's cache of finders.

    Python makes them again when it next looks for a module there, from the directory of the
    archive that its own finder has read. That finder stays, and reads a changed archive again.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter) and finder.prefix:
            del sys.path_importer_cache[path]


@contextmanager
def rare_collections() -> Generator[None]:
    """Have Python collect garbage less often."""
    before = gc.get_threshold()
    gc.set_threshold(YOUNG_OBJECTS_MAX, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
