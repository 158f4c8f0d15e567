"""Messages between agents: events, changes, jobs, consolidation."""
