"""A program that holds the lock of partition 1 in the folder of its argument, and says `held` once it does."""

HOLDER = """
import asyncio, sys, time
from pathlib import Path
from streams.runtime.partition_locks import PartitionLocks
locks = PartitionLocks(Path(sys.argv[1]))
locks.assign([1])
asyncio.run(locks.acquire())
print("held", flush=True)
time.sleep(60)
"""
