"""The sources of a stream's batches: a running quorum, or growing directories.

A quorum is read through `quorum_client`, over the connections of `connection`. What Spark calls,
and rows, are in `kvorum.spark.metadata_source`.
"""
