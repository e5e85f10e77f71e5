"""Print how many records of each type Spark reads from a metadata log: `spark_rows.py FOLDER`."""

import sys

from kvorum.spark import KvorumMetadataSource
from kvorum.spark.session import build_session

session = build_session(master="local[1]")
session.dataSource.register(KvorumMetadataSource)
rows = session.read.format("kvorum-metadata").option("path", sys.argv[1]).load()
for row in sorted(rows.groupBy("type").count().collect()):
    print(row["type"], row["count"])
session.stop()
