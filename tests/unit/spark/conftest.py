"""One Spark session for all tests that need one."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from tests.interop.kafka.fetch_jars import NotToBeHadError, find_java

from kvorum.spark.session import build_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on two cores of this machine."""
    try:
        find_java()
    except NotToBeHadError as error:
        pytest.skip(str(error))
    session = build_session(master="local[2]")
    # The tables are small: more partitions would only be more tasks.
    session.conf.set("spark.sql.shuffle.partitions", "1")
    yield session
    session.stop()
