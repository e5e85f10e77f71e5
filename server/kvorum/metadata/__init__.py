"""What the metadata log says: its records, features and configs, and the image they fold into."""
