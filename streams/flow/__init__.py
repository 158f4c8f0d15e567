"""How an event goes through an agent: read, handled, made safe, acknowledged."""
