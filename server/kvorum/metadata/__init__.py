"""Cluster metadata: records, features and configurations, and the image that they fold into."""
