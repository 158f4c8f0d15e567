"""Read the token vectors of packed rows as one matrix: no object is built for a memory, thousands are read at once."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schemas.models.vectors import MemoryFilter
from schemas.state.modes import Fingerprint
from streams.adapters.vectors.embedded.packed_vectors import ROW_HEADER, PackedTokens, filter_fields
from streams.adapters.vectors.embedded.scoring import Mask, RowNumbers, time_mask

_HEADER = np.dtype([("occurred_ms", "<i8"), ("kind_bytes", "<u2")])
"""`ROW_HEADER` as columns."""

_FLOAT_BYTES = 4


class TokenRows(NamedTuple):
    """Memories with token vectors, each with at least one: memory i has those from `starts[i]` on."""

    memory_ids: list[str]
    tokens: PackedTokens
    starts: RowNumbers


def read_tokens(fingerprint: Fingerprint, where: MemoryFilter, row_of: Mapping[str, bytes]) -> TokenRows:
    """Return the memories that the filter admits and that have token vectors, of a space that has such."""
    memory_ids, rows = list(row_of), list(row_of.values())
    headers = np.frombuffer(b"".join([row[: ROW_HEADER.size] for row in rows]), _HEADER, len(rows))
    ends = ROW_HEADER.size + headers["kind_bytes"].astype(np.int64)
    firsts = ends + _FLOAT_BYTES * fingerprint.dim
    counts = (np.fromiter(map(len, rows), np.int64, len(rows)) - firsts) // fingerprint.token_dim
    mask = _kind_mask(where, rows, ends) & time_mask(headers["occurred_ms"], where) & (counts > 0)
    places, counts = np.flatnonzero(mask).tolist(), counts[mask]
    data = b"".join([rows[place][first:] for place, first in zip(places, firsts[mask].tolist(), strict=True)])
    tokens = np.frombuffer(data, np.int8).reshape(-1, fingerprint.token_dim)
    return TokenRows([memory_ids[place] for place in places], tokens, np.cumsum(counts) - counts)


def _kind_mask(where: MemoryFilter, rows: Sequence[bytes], ends: RowNumbers) -> Mask:
    """Return which rows have filter fields that the filter admits; each different one is checked once."""
    kinds = [row[ROW_HEADER.size : end] for row, end in zip(rows, ends.tolist(), strict=True)]
    admitted = {kind: filter_fields(kind).admitted(where) for kind in set(kinds)}
    mask: NDArray[np.bool_] = np.fromiter(map(admitted.__getitem__, kinds), np.bool_, len(kinds))
    return mask
