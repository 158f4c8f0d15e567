"""Modules of custom steps that exit, crash or never return are imported by a child process alone."""

import sys
from pathlib import Path

import pytest

from agents.ports.pipelines import StepPorts
from agents.rules.pipelines.built_in import DEFAULT_TOPOLOGY
from agents.rules.pipelines.contract import CustomStepConfig
from schemas.failures import Rejected
from schemas.state.pipelines import PlacedStep, Topology
from streams.adapters.installed_steps import PythonSteps

STEP = """
class Step:
    role, requires, produces, capabilities = "preprocess", ("turn",), ("turn",), ()

    def __init__(self, config, ports):
        if config.timeout_s == 1.0:
            raise SystemExit("no licence")

    def __call__(self, turn):
        return {"turn": turn}
"""
MODULES = {
    "good": STEP,
    "loud": "import threading, time\nprint('no')\nthreading.Thread(target=time.sleep, args=(1,)).start()\n" + STEP,
    "raises": "raise OSError('no licence')",
    "exits": "import sys; sys.exit()",
    "interrupts": "raise KeyboardInterrupt",
    "ends": "import os; os._exit(3)",
    "dies": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "blocks": "while True: pass",
}  # fmt: skip


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PythonSteps:
    """The installed classes of a package of such modules."""
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "__init__.py").touch()
    for name, source in MODULES.items():
        (tmp_path / "acme" / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("acme", *(f"acme.{module}" for module in MODULES)):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return PythonSteps({"acme"})


def placed(path: str) -> PlacedStep:
    return PlacedStep(step_id="memorize.own", implementation=path)


def with_step(step: PlacedStep) -> Topology:
    return DEFAULT_TOPOLOGY.with_steps("memorize", (*DEFAULT_TOPOLOGY.memorize, step))


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("raises", "OSError: no licence"),
        ("exits", "SystemExit"),
        ("interrupts", "KeyboardInterrupt"),
        ("ends", "the import ended its process, exit code 3"),
        ("dies", "the import ended its process, exit code -9"),
        ("blocks", "the import did not end within 0.5 s"),
        ("absent", "ModuleNotFoundError"),
    ],
)
async def test_module_that_can_not_be_imported_is_refused_with_the_reason(
    acme: PythonSteps, module: str, reason: str
) -> None:
    step = placed(f"acme.{module}.Step")
    await acme.load(with_step(step), 0.5 if module == "blocks" else 30)
    with pytest.raises(Rejected) as refused:
        acme.contract(step)
    assert refused.value.message.startswith(f"rule unknown_class: acme.{module}.Step can't be imported: {reason}")
    assert f"acme.{module}" not in sys.modules


@pytest.mark.parametrize("module", ["good", "loud"])
async def test_module_that_can_be_imported_has_its_contract(acme: PythonSteps, module: str) -> None:
    step = placed(f"acme.{module}:Step")
    await acme.load(with_step(step), 30)
    assert acme.contract(step).produces == {"turn"}


async def test_module_that_failed_is_tried_again_only_where_that_is_wanted(acme: PythonSteps, tmp_path: Path) -> None:
    step = placed("acme.raises.Step")
    await acme.load(with_step(step), 30)
    (tmp_path / "acme" / "raises.py").write_text(STEP)
    await acme.load(with_step(step), 30, again=False)
    with pytest.raises(Rejected, match="no licence"):
        acme.contract(step)
    await acme.load(with_step(step), 30)
    assert acme.contract(step).role == "preprocess"


async def test_class_of_an_unlisted_package_is_not_imported(acme: PythonSteps) -> None:
    for packages in ((), {"acm"}, {"acme.good"}):
        installed, step = PythonSteps(packages), placed("acme.exits.Step")
        await installed.load(with_step(step), 30)
        with pytest.raises(Rejected, match=r"rule unlisted_package: .*MODESTREAM_PIPELINE_PACKAGES"):
            installed.contract(step)
    assert "acme" not in sys.modules


async def test_constructor_that_exits_is_a_refusal(acme: PythonSteps) -> None:
    step = placed("acme.good.Step")
    await acme.load(with_step(step), 30)
    with pytest.raises(Rejected, match="can't be constructed: SystemExit"):
        acme.build(step, CustomStepConfig(timeout_s=1.0), StepPorts())


async def test_module_for_which_no_process_can_be_started_is_refused_with_the_reason(
    acme: PythonSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = placed("acme.good.Step")
    monkeypatch.setattr(sys, "executable", "/there/is/no/python")
    await acme.load(with_step(step), 30)
    with pytest.raises(Rejected, match="can't be imported: FileNotFoundError"):
        acme.contract(step)
