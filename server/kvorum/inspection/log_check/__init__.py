"""The check of log files without a node: what is damaged, where, what that means, what to do.

`check` is the way in. `partition_check` looks at one partition's directory, with one pass over its
log that each of the other modules takes part in; `check` itself looks at the files around the
partitions, `replica_check` at several copies of one log. `findings` has the words.
"""
