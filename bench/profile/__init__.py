"""Processor time by stage: counters of the kernel and a sampling profile of the worker (`python -m bench.profile`)."""
