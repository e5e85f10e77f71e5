"""The part that all coordinators have in common: a shard folds one partition of an internal topic.

A shard is pure: time comes in as `now_ms`, records, timers and answers come out as values.
"""
