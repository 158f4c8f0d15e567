"""Messages on the wire: turns, requests, commands, replies, and decoding of records."""
