"""Records, events, commands, replies and table values. Imports nothing of agents or streams."""
