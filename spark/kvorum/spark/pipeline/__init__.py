"""The job behind ``kvorum pipeline``: the metadata logs of a fleet in, tables out.

One task folds one cluster, and writes the rows of all its tables itself; the driver only plans and
commits. Only `job` and `run` need pyspark.

`replicas` groups the files, `planning` finds what is new, `log_reading` reads a log across its
replicas, `fold_task` and `records_task` are what executors do, `staged_tables` writes Parquet,
`journal` makes a run visible, and `lock` keeps a second run away.
"""
