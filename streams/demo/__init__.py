"""The demo: a conversation, the questions, the page that shows the answers, and the system around them."""
