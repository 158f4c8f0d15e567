"""Logs as files: segments of JSON lines with checksums, and a manifest that names them."""
