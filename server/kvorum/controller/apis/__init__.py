"""The APIs that the controller decides on: one module for each, named after it."""
