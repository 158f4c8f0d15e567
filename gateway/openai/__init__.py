"""The address for OpenAI's clients: a proxy before a provider that adds memories to requests and stores turns."""
