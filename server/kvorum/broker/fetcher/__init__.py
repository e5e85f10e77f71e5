"""A follower's side of fetching from one leader: requests, states, truncation. Pure.

`ReplicaFetcher` builds the requests and takes in the responses; its owner sends them.
"""
