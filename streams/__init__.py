"""Topics, tables, wiring, processes, and every adapter with a socket or a file."""
