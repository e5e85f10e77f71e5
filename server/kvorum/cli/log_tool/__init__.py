"""The subcommands of ``kvorum log``, one module each: arguments in, lines out."""
