"""mem0's shape under `/mem0`: programs of a self-hosted mem0 connect by changing an address."""
