"""The HTTP door: routes, problem details, deadlines, limits."""
