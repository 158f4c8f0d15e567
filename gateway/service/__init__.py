"""One service object behind every door: checks of access, requests to the service, answers as JSON."""
