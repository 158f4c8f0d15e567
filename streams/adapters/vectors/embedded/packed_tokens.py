"""The token vectors of packed rows as one matrix."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from schemas.models.vectors import MemoryFilter
from schemas.state.modes import Fingerprint
from streams.adapters.vectors.embedded.packed_vectors import ROW_HEADER, PackedTokens, filter_fields
from streams.adapters.vectors.embedded.scoring import RowNumbers, time_mask

_FLOAT_BYTES = 4


class TokenRow(NamedTuple):
    """What late interaction needs of a packed row: when, the filter fields as bytes, the token vectors as bytes."""

    occurred_ms: int
    kind: bytes
    tokens: bytes


class TokenRows(NamedTuple):
    """Memories with token vectors, each with at least one: memory i has those from `starts[i]` on."""

    memory_ids: list[str]
    tokens: PackedTokens
    starts: RowNumbers


def token_row(fingerprint: Fingerprint, row: bytes, kinds: dict[bytes, bytes]) -> TokenRow:
    """Take a packed row apart; its pooled vector is left out. Rows with equal fields share the object in `kinds`."""
    occurred_ms, length = ROW_HEADER.unpack_from(row)
    end = ROW_HEADER.size + length
    kind = row[ROW_HEADER.size : end]
    return TokenRow(occurred_ms, kinds.setdefault(kind, kind), row[end + _FLOAT_BYTES * fingerprint.dim :])


def stack_tokens(fingerprint: Fingerprint, where: MemoryFilter, row_of: Mapping[str, TokenRow]) -> TokenRows:
    """Return the memories that the filter admits and that have token vectors, of a space that has such."""
    memory_ids, rows = list(row_of), list(row_of.values())
    admitted = {kind: filter_fields(kind).admitted(where) for kind in {row.kind for row in rows}}
    counts = np.fromiter((len(row.tokens) for row in rows), np.int64, len(rows)) // fingerprint.token_dim
    mask = np.fromiter((admitted[row.kind] for row in rows), np.bool_, len(rows)) & (counts > 0)
    mask &= time_mask(np.fromiter((row.occurred_ms for row in rows), np.int64, len(rows)), where)
    places, counts = np.flatnonzero(mask).tolist(), counts[mask]
    data = b"".join([rows[place].tokens for place in places])
    tokens = np.frombuffer(data, np.int8).reshape(-1, fingerprint.token_dim)
    return TokenRows([memory_ids[place] for place in places], tokens, np.cumsum(counts) - counts)
