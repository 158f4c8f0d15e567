"""The Faust tables behind the ports, one file each."""
