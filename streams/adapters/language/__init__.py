"""Language models over HTTP, through LiteLLM: validated answers, or one of two failures."""
