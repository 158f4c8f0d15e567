"""One writer for each table: the writer ports, by the packages that take them."""

import importlib
import inspect
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator

import agents

WRITERS = {
    "MemoryWriter": {"memory"},
    "LexicalWriter": {"memory"},
    "ClaimWriter": {"memory"},
    "FileWriter": {"memory"},
    "InteractionWriter": {"memory"},
    "ModeWriter": {"commands"},
    "CategoryWriter": {"categories"},
    "IntentionWriter": {"intentions"},
}
"""Each writer port and the one package that takes it."""


def classes() -> Iterator[type]:
    """Yield every class in `agents` outside the ports, except exceptions."""
    for module in pkgutil.walk_packages(agents.__path__, "agents."):
        if not module.name.startswith("agents.ports"):
            loaded = importlib.import_module(module.name)
            defined = (
                defined_class
                for _, defined_class in inspect.getmembers(loaded, inspect.isclass)
                if defined_class.__module__ == module.name
            )
            yield from (defined_class for defined_class in defined if not issubclass(defined_class, Exception))


def test_each_writer_port_is_taken_by_one_package() -> None:
    packages = defaultdict(set)
    for kind in classes():
        for parameter in inspect.signature(kind).parameters.values():
            for port in re.findall(r"\w+Writer\b", str(parameter.annotation)):
                packages[port].add(kind.__module__.split(".")[1])
    assert packages == WRITERS
