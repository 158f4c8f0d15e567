"""`up` with the toy worker and gateway: `python toy_up.py DATA_DIR PORT`."""

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path

from streams.up.fleet import FleetOptions
from streams.up.supervisor import run_up
from streams.up.system import UpOptions

if __name__ == "__main__":
    directory, port = Path(sys.argv[1]), int(sys.argv[2])

    async def probe(_: str) -> bool:
        with suppress(OSError, ValueError):
            pid = int((directory / "run" / "worker.pid").read_text())
            return bool(json.loads((directory / "given").read_text())["pid"] == pid)
        return False

    worker = (sys.executable, str(Path(__file__).with_name("toy_worker.py")))
    gateway = (sys.executable, str(Path(__file__).with_name("toy_gateway.py")))
    options = UpOptions(
        data_dir=directory,
        port=port,
        probe=probe,
        http_port=0,
        fleet=FleetOptions(command=worker, liveness_interval_s=0.1),
        gateway=gateway,
        worker_secrets=frozenset({"TOY_MODEL_KEY"}),
    )
    sys.exit(asyncio.run(run_up(options)))
