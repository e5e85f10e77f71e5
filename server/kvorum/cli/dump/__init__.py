"""Output of ``kvorum dump-log``, with one module per kind of file and of content."""
