"""The generator of Python source from message schemas. Never imported at run time."""
