"""One writer for each table: the type checker separates readers from writers, this test counts the writers."""

import importlib
import inspect
import pkgutil
from collections import defaultdict
from collections.abc import Iterator

import agents

WRITERS = {
    "MemoryWriter": {"memory"},
    "LexicalWriter": {"memory"},
    "ClaimWriter": {"memory"},
    "ModeWriter": {"commands"},
    "CategoryWriter": {"categories"},
    "IntentionWriter": {"intentions"},
}
"""Each writer port, and the package of the agent that writes the table."""


def classes() -> Iterator[type]:
    """Yield every class that is defined in `agents`, ports excepted."""
    for module in pkgutil.walk_packages(agents.__path__, "agents."):
        if not module.name.startswith("agents.ports"):
            loaded = importlib.import_module(module.name)
            yield from (one for _, one in inspect.getmembers(loaded, inspect.isclass) if one.__module__ == module.name)


def test_each_writer_port_is_taken_by_one_package() -> None:
    taken = defaultdict(set)
    for one in classes():
        for parameter in inspect.signature(one).parameters.values():
            taken[getattr(parameter.annotation, "__name__", "")].add(one.__module__.split(".")[1])
    assert {port: taken[port] for port in WRITERS} == WRITERS
