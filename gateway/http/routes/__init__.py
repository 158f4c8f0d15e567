"""The routes over HTTP, by topic."""
