"""How the client asks: records to the wire, replies to results, many users to one answer."""
