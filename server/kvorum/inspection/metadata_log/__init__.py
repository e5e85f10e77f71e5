"""A metadata log as files: its batches, the records in them, and the image as of any offset."""
