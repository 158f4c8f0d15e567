"""The demo: a conversation, queries, the output page, and the system that it runs on."""
