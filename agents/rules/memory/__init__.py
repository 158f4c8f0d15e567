"""The life of one memory: identity, versions, embedding status, superseding, forgetting."""
