"""Messages on the wire: turns, requests, commands, replies, and how a record is decoded."""
