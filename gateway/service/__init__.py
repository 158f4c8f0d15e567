"""One service object behind every transport: checks of access, requests to the service, answers as JSON."""
