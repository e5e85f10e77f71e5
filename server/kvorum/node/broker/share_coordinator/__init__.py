"""The share coordinator of a broker, on the runtime of all coordinators, and the way to all others.

The state of a share partition is kept by the coordinator of its key: group, topic and partition.
"""
