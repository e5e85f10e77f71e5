"""Finding and reading the files of Kafka's logs, of any node, on any file system.

`find` finds them, `ranges` splits them into units of work, and `entry_reader` reads such a unit
into batches and descriptions of damage. Records are not decoded.
"""
