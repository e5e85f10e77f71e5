"""The error of a path or a file system that has no usable files."""


class LogFilesError(Exception):
    """A path without files of a log, or with some of them missing; the text says where and why."""
