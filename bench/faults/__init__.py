"""What each fault costs: turns lost or doubled, time until all is well, and what another user notices."""
