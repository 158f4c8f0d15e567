"""Vector spaces of embedders that are named and described, and never loaded."""

from schemas.state.modes import Fingerprint, VectorSpace


def space_of(
    dim: int = 4, mode: str = "general", embedder: str = "tiny", token_dim: int = 0, passages: str | None = None
) -> VectorSpace:
    """Return the space of a mode and an embedder; with `token_dim` it has token vectors, with `passages` cut texts."""
    fingerprint = Fingerprint(
        embedder=embedder, file_sha256="0" * 64, precision="fp32", dim=dim, pooling="mean", normalize=True,
        passage_prefix="", max_tokens=256, tokens=f"linear-{token_dim}" if token_dim else None, token_dim=token_dim,
        passages=passages,
    )  # fmt: skip
    return VectorSpace(mode, fingerprint)
