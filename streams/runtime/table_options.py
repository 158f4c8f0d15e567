"""RocksDB's settings for the databases of tables, one a table and partition: some forty in a worker.

Guaranteed: a database keeps at most `WRITE_BUFFERS * WRITE_BUFFER_BYTES` of writes in memory, and all of the process
together `BLOCK_CACHE_BYTES` of blocks that were read. Faust's own are 192 MB and 2 GB for each.
"""

from functools import cache

from faust.stores.rocksdb import RocksDBOptions
from rocksdict import BlockBasedOptions, Cache, Options

WRITE_BUFFER_BYTES, WRITE_BUFFERS = 8 * 2**20, 2
"""RocksDB's memtables: one that is written to, one that goes to the disk. 8 MB are some 5,000 rows of memories."""

BLOCK_CACHE_BYTES = 32 * 2**20
"""Blocks that were read. What is not here is in the system's cache of files, compressed: some 10 us a row."""

LEVEL_BYTES, FILE_BYTES = 32 * 2**20, 8 * 2**20
"""The size of the first level, and of a file. Keys are random, so full buffers are merged with all of the first level:
256 MB by RocksDB's default."""

BLOOM_BITS = 10
"""Bits per key: a lookup of a missing id, as of each new turn, skips 99 of 100 files unread (RocksDB's wiki)."""


class TableOptions(RocksDBOptions):
    """What `CheckedStore` opens its databases with."""

    def as_options(self) -> Options:
        """Return the settings."""
        blocks = BlockBasedOptions()
        blocks.set_bloom_filter(BLOOM_BITS, block_based=False)
        blocks.set_block_cache(_block_cache())
        options = Options(raw_mode=True)
        options.set_max_open_files(self.max_open_files or -1)
        options.set_write_buffer_size(WRITE_BUFFER_BYTES)
        options.set_max_write_buffer_number(WRITE_BUFFERS)
        options.set_max_bytes_for_level_base(LEVEL_BYTES)
        options.set_target_file_size_base(FILE_BYTES)
        options.set_block_based_table_factory(blocks)
        return options


@cache
def _block_cache() -> Cache:
    return Cache(BLOCK_CACHE_BYTES)
