"""The collections of the server in a directory: a shard, its description, and the aliases of all.

Guaranteed: what a write returned for survives `kill -9`.
"""

import json
import shutil
from pathlib import Path
from uuid import uuid4

import qdrant_edge as edge
from qdrant_client import grpc

from tests.fakes.qdrant_server.messages import shard_config

CREATED_FILE, ALIASES_FILE = "created.bin", "aliases.json"


class NotFoundError(Exception):
    """The collection does not exist."""


class AlreadyExistsError(Exception):
    """The collection exists."""


class Store:
    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(parents=True, exist_ok=True)
        self._open: dict[str, edge.EdgeShard] = {}
        self._paths: dict[str, Path] = {}
        self.created: dict[str, grpc.CreateCollection] = {}
        for described in root.glob(f"*/{CREATED_FILE}"):
            created = grpc.CreateCollection.FromString(described.read_bytes())
            name = created.collection_name
            self.created[name], self._paths[name] = created, described.parent
            self._open[name] = edge.EdgeShard.load(str(described.parent / "shard"), shard_config(created))
        aliases = root / ALIASES_FILE
        self.aliases: dict[str, str] = json.loads(aliases.read_text()) if aliases.exists() else {}

    def shard(self, name: str) -> edge.EdgeShard:
        try:
            return self._open[self.aliases.get(name, name)]
        except KeyError:
            raise NotFoundError(f"Collection `{name}` doesn't exist!") from None

    def create(self, request: grpc.CreateCollection) -> None:
        """Create a collection. Raises AlreadyExistsError."""
        name = request.collection_name
        if name in self.created:
            raise AlreadyExistsError(f"Collection `{name}` already exists!")
        path = self._root / uuid4().hex
        path.mkdir()
        self._open[name] = edge.EdgeShard.create(_made(path / "shard"), shard_config(request))
        # Last: a directory without it is that of a killed attempt.
        staged = path / "created.new"
        staged.write_bytes(request.SerializeToString())
        staged.rename(path / CREATED_FILE)
        self.created[name] = request
        self._paths[name] = path

    def delete(self, name: str) -> bool:
        if self.created.pop(name, None) is None:
            return False
        self._open.pop(name).close()
        path = self._paths.pop(name)
        (path / CREATED_FILE).unlink()
        shutil.rmtree(path)
        return True

    def point_alias(self, alias: str, name: str) -> None:
        self.shard(name)
        self.aliases[alias] = name
        staged = self._root / "aliases.new"
        staged.write_text(json.dumps(self.aliases))
        staged.rename(self._root / ALIASES_FILE)

    def close(self) -> None:
        for shard in self._open.values():
            shard.close()


def _made(path: Path) -> str:
    path.mkdir()
    return str(path)
