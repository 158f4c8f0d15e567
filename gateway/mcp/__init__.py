"""The Model Context Protocol: tools, resources and a prompt over the service, for programs with a language model."""
