"""Steps: what each agent reads, writes and publishes."""
