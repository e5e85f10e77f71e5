"""The sources of a stream's batches: a running quorum, or growing directories.

A quorum is read through `kvorum.quorum_client`. What Spark calls, and rows, are in
`kvorum.spark.metadata_source`.
"""
