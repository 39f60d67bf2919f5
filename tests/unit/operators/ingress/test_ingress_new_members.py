"""A new destination, a new type of logs, a new parameter: each is one module and one member.

The test adds throw-away ones to a copy of the package, and asks that build for the definition and
for what it writes. Nothing else is changed there.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.changed_package import ChangedPackage
from tests.ingress_controllers import ingress_controller, to_container

API = "api/operator_v1/access_logging.py"
LOGGING = "operators/ingress/logging"
ASK = """
import json, sys
import msgspec
from quarterdeck.api.definition import root_schema
from quarterdeck.api.operator_v1 import INGRESS_CONTROLLERS, IngressController
from quarterdeck.operators.ingress.admission import admission
from quarterdeck.operators.ingress.operands import desired_operands
from quarterdeck.operators.ingress.settings import Settings

controller = msgspec.convert(json.loads(sys.argv[1]), IngressController)
operands = desired_operands(controller, Settings())
spec = root_schema(INGRESS_CONTROLLERS)["properties"]["spec"]["properties"]
print(json.dumps({
    "logging": spec["logging"]["properties"],
    "pod": operands.deployment["spec"]["template"]["spec"],
    "admitted": admission(controller).admitted,
    "package": sys.modules["quarterdeck"].__file__,
}))
"""
MODULE = """
from quarterdeck.operators.ingress.logging.additions import Additions, AdditionContext


def additions(value: object, context: AdditionContext) -> Additions:
    return Additions(environment={{"{variable}": str({value})}})
"""


@pytest.fixture
def build(tmp_path: Path) -> ChangedPackage:
    """A copy of the package."""
    return ChangedPackage(tmp_path)


def asked(build: ChangedPackage, **logging: Any) -> tuple[dict[str, Any], dict[str, str], Any]:
    """The schema of `spec.logging`, the router's variables, and the whole answer."""
    answer = json.loads(build.run("-c", ASK, json.dumps(ingress_controller("it", logging=logging))))
    assert "build/quarterdeck" in answer["package"]
    router = answer["pod"]["containers"][0]
    return answer["logging"], {one["name"]: one.get("value") for one in router["env"]}, answer


def test_a_new_destination(build: ChangedPackage) -> None:
    # The type of the parameters belongs to the member.
    build.replace(API, UNION, TAPE + UNION)
    build.insert(API, after='Present only if type is Container."""\n', text=TAPE_MEMBER)
    build.add(
        f"{LOGGING}/access/destination/tape.py",
        MODULE.format(variable="ROUTER_SYSLOG_ADDRESS", value="value.drive"),
    )
    destination = {"type": "Tape", "tape": {"drive": "/dev/st0"}}
    schema, env, answer = asked(build, access={"destination": destination})
    found = schema["access"]["properties"]["destination"]
    assert found["properties"]["type"]["enum"] == ["Container", "Syslog", "Tape"]
    assert found["properties"]["tape"]["required"] == ["drive"]
    messages = {rule["message"] for rule in found["x-kubernetes-validations"]}
    assert "tape is required when type is Tape" in messages
    assert "tape is forbidden unless type is Tape; remove it, or change type" in messages
    assert (env["ROUTER_SYSLOG_ADDRESS"], env["ROUTER_LOG_LEVEL"]) == ("/dev/st0", "info")
    assert answer["admitted"]


UNION = "class LoggingDestinations(Part):"
TAPE_MEMBER = '''
    tape: TapeDestination | None = None
    """The parameters of the destination Tape."""
'''
TAPE = '''class TapeDestination(Part):
    """A tape."""

    drive: str
    """The drive."""


'''


def test_a_new_parameter(build: ChangedPackage) -> None:
    build.insert(
        API,
        after='"""Where the lines go."""\n',
        text="""
    colour: str | None = None
    \"\"\"The colour of the lines.\"\"\"
""",
    )
    build.add(
        f"{LOGGING}/access/colour.py", MODULE.format(variable="ROUTER_LOG_COLOUR", value="value")
    )
    access = to_container()["access"] | {"colour": "red"}
    schema, env, _ = asked(build, access=access)
    assert schema["access"]["properties"]["colour"]["type"] == "string"
    assert env["ROUTER_LOG_COLOUR"] == "red"
    assert "ROUTER_LOG_COLOUR" not in asked(build, **to_container())[1]


def test_a_new_type_of_logs(build: ChangedPackage) -> None:
    build.insert(
        API,
        after='If it is absent, they are not logged."""\n',
        text="""
    errors: str | None = None
    \"\"\"The level of the errors that are logged.\"\"\"
""",
    )
    build.add(f"{LOGGING}/errors.py", MODULE.format(variable="ROUTER_ERRORS", value="value"))
    schema, env, _ = asked(build, errors="warning")
    assert set(schema) == {"access", "errors"}
    assert env["ROUTER_ERRORS"] == "warning"
    assert "ROUTER_LOG_LEVEL" not in env
    both = asked(build, errors="warning", **to_container())[1]
    assert (both["ROUTER_ERRORS"], both["ROUTER_LOG_LEVEL"]) == ("warning", "info")


def test_every_member_of_the_api_has_its_module() -> None:
    """What is accepted and has no module would end every reconcile with an error."""
    from importlib import import_module

    from quarterdeck.api.operator_v1.access_logging import (
        AccessLogging,
        IngressControllerLogging,
        LoggingDestinations,
    )

    package = "quarterdeck.operators.ingress.logging"
    for part, below in (
        (IngressControllerLogging, ""),
        (AccessLogging, ".access"),
        (LoggingDestinations, ".access.destination"),
    ):
        for field in part.__struct_fields__:
            assert callable(import_module(f"{package}{below}.{field}").additions)
