"""What ``kvorum dump-log`` prints, one module for each kind of file and of content."""
