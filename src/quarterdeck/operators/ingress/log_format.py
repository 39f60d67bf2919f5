"""Asks the router's HAProxy whether it accepts the access log of an IngressController.

An access log is checked once: an IngressController that has not changed starts no HAProxy.
"""

from collections.abc import Mapping

from quarterdeck.haproxy.access_log import access_log
from quarterdeck.haproxy.check import check_access_log
from quarterdeck.haproxy.errors import CheckError, InvalidVariableError, RefusedTextError
from quarterdeck.operators.ingress.admission import ADMITTED, Admission

REMEMBERED = 1024
"""The most access logs whose check is remembered."""
FIELD = "spec.logging.access.httpLogFormat"


class FormatChecks:
    """The answers of HAProxy so far."""

    def __init__(self, program: str = "haproxy") -> None:
        self._program = program
        self._known: dict[tuple[tuple[str, str], ...], Admission] = {}

    async def admission(self, variables: Mapping[str, str]) -> Admission:
        """Whether HAProxy accepts the access log that these variables of the router ask for."""
        asked = tuple(sorted(variables.items()))
        if asked in self._known:
            return self._known[asked]
        try:
            found = await checked(variables, self._program)
        except CheckError as error:
            # Not remembered: the next reconcile asks again.
            return Admission(False, "LogFormatNotChecked", f"{FIELD}: {error}")
        if len(self._known) >= REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[asked] = found
        return found


async def checked(variables: Mapping[str, str], program: str = "haproxy") -> Admission:
    """HAProxy's answer; raises `CheckError` if it cannot be asked."""
    try:
        log = access_log(variables)
        if log is None:
            return ADMITTED
        # All else has a form that HAProxy accepts.
        if log.format or log.request_headers or log.response_headers or log.cookie:
            await check_access_log(log, program)
    except InvalidVariableError as error:
        return Admission(False, "InvalidAccessLog", f"spec.logging.access: {error}")
    except RefusedTextError as error:
        return Admission(False, "InvalidLogFormat", f"{FIELD}: {error}")
    return ADMITTED
