"""What every operator runs on: queue, controller loop, manager, election, metrics, probes.

An operator needs `Controller`, `Watch` and the `Manager` that it is set up with; see
`docs/writing-an-operator.md`. A program that runs operators needs `Process`.
"""

from quarterdeck.controller.backoff import Backoff
from quarterdeck.controller.controller import Controller, ControllerCrashed
from quarterdeck.controller.election import LeadershipLost, Timing
from quarterdeck.controller.events import Recorder
from quarterdeck.controller.manager import Manager
from quarterdeck.controller.metadata import controller_of, key_of, owned_by
from quarterdeck.controller.objects import Objects
from quarterdeck.controller.probes import ProbeAddressError
from quarterdeck.controller.process import NothingToRun, Operator, Process, Settings
from quarterdeck.controller.result import DONE, InvalidSpec, Result
from quarterdeck.controller.watch import Watch, spec_changed, to_owner, to_self

__all__ = [
    "DONE",
    "Backoff",
    "Controller",
    "ControllerCrashed",
    "InvalidSpec",
    "LeadershipLost",
    "Manager",
    "NothingToRun",
    "Objects",
    "Operator",
    "ProbeAddressError",
    "Process",
    "Recorder",
    "Result",
    "Settings",
    "Timing",
    "Watch",
    "controller_of",
    "key_of",
    "owned_by",
    "spec_changed",
    "to_owner",
    "to_self",
]
