"""What a follower does with the partitions that it fetches from one leader. Pure.

`ReplicaFetcher` builds the requests and takes in the responses; its owner sends them.
"""
