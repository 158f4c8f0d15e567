"""Adapters of modestream to agent frameworks. Each module needs only its own framework."""
