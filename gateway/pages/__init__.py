"""The window: pages at `/admin`, over the same service object as all transports."""
