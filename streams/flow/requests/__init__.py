"""The request pipeline: address, admission, relocation, handling, reply or dead letter."""
