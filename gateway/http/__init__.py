"""HTTP: routes, problem details, deadlines, limits."""
