"""The runtime of every operator: queue, controller, manager, leader election, metrics, probes.

An operator needs `Controller`, `Watch` and its `Manager`; see `docs/writing-an-operator.md`. A
program that runs operators needs `Process`.
"""

from quarterdeck.backoff import Backoff
from quarterdeck.controller.controller import Controller, ControllerCrashed
from quarterdeck.controller.election import LeadershipLost, Timing
from quarterdeck.controller.events import Recorder
from quarterdeck.controller.faults import Fault, StatusWriter
from quarterdeck.controller.finalizer import Finalizer
from quarterdeck.controller.group import Group
from quarterdeck.controller.manager import Manager
from quarterdeck.controller.metadata import controller_of, key_of, owned_by
from quarterdeck.controller.named import NamedObjects
from quarterdeck.controller.objects import Objects
from quarterdeck.controller.probes import ProbeAddressError
from quarterdeck.controller.process import NothingToRun, Operator, Process, ProcessSettings
from quarterdeck.controller.result import DONE, InvalidSpec, Result
from quarterdeck.controller.selection import Selection, selector_in
from quarterdeck.controller.tasks import TaskEnded
from quarterdeck.controller.unconnected import recorded_uses
from quarterdeck.controller.uses import UndeclaredWrite, Use, Write
from quarterdeck.controller.watch import (
    Watch,
    spec_changed,
    to_labelled,
    to_owner,
    to_self,
    to_singleton,
)

__all__ = [
    "DONE",
    "Backoff",
    "Controller",
    "ControllerCrashed",
    "Fault",
    "Finalizer",
    "Group",
    "InvalidSpec",
    "LeadershipLost",
    "Manager",
    "NamedObjects",
    "NothingToRun",
    "Objects",
    "Operator",
    "ProbeAddressError",
    "Process",
    "ProcessSettings",
    "Recorder",
    "Result",
    "Selection",
    "StatusWriter",
    "TaskEnded",
    "Timing",
    "UndeclaredWrite",
    "Use",
    "Watch",
    "Write",
    "controller_of",
    "key_of",
    "owned_by",
    "recorded_uses",
    "selector_in",
    "spec_changed",
    "to_labelled",
    "to_owner",
    "to_self",
    "to_singleton",
]
