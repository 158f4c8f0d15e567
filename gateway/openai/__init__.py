"""The address for OpenAI's clients: a proxy in front of a provider that adds memories to requests and stores turns."""
