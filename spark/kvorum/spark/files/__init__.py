"""Finding and reading the files of Kafka's logs on any file system, without Spark.

`find` finds them, `ranges` splits them into units of work, `range_reader` reads such a unit into
batches and descriptions of damage, and `damage` decides by a query's mode what damage means.
Records are not decoded.
"""
