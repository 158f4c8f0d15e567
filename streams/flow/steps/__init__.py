"""One step an agent: what it reads, what it makes safe, what follows."""
