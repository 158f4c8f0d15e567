"""The doors to the outside: protocols that adapters and fakes implement, and the types that cross them."""
