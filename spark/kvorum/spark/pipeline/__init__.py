"""The job of ``kvorum pipeline``: the metadata logs of a fleet in, tables out.

One task folds one cluster, and writes the rows of all its tables itself; the driver only plans and
commits. Only `job` and `run` need pyspark.

`replicas` groups the files, `run` finds what is new, `log_reading` reads a log across its replicas,
`fold_task` and `records_task` are what executors do, `staged_files` writes Parquet, `journal` makes
a run visible, and `lock` keeps a second run away.
"""
