"""The sidecar's rsyslog.conf, and the canary by which the router knows that lines arrive. Pure.

The router sends a request to a frontend of its own. Its line takes the way of all access lines,
with a tag of its own and an identifier as its text. rsyslog keeps it out of the log and hands it to
a second socket, which the router reads, with the numbers of access lines so far and the time of the
first canary since it started. Lines keep their order on the way, so the numbers are exact for the
moment of the canary: all lines, and those of each facility of the ring, that is, of each of two
workers of which one replaces the other.
"""

import re

import msgspec

from quarterdeck.haproxy.access_log import DIRECTORY

CANARY_TAG = "quarterdeck-canary"
"""The syslog tag of canary lines."""
CANARY_SOCKET_NAME = "canary.sock"
"""In the shared directory: the router's datagram socket, to which rsyslog sends canaries."""

STANDARD_OUTPUT = "/dev/stdout;RSYSLOG_FileFormat"
"""An action that every build of rsyslog has. Builds with `omstdout` can use `:omstdout:`."""


def rsyslog_conf(action: str = STANDARD_OUTPUT, directory: str = DIRECTORY) -> str:
    """The configuration of the sidecar that writes each access line by this action.

    - A message may have 16 KiB: the longest line has 8,192 bytes.
    - imuxsock expects no host name in a message unless it is told to; HAProxy sends one.
    - A killed rsyslog leaves its stream socket behind; the next one could not listen there.
    - HAProxy's notices, which are more severe than access lines, are in the router's own output.
    - Messages of rsyslog itself go to the log, but do not count as access lines.
    """
    load = "$ModLoad omstdout.so\n" if action.startswith(":omstdout:") else ""
    return f"""\
global(maxMessageSize="16k")
module(load="imuxsock" SysSock.Name="{directory}/rsyslog.sock" SysSock.RateLimit.Interval="0"
  SysSock.UseSpecialParser="off" SysSock.ParseHostname="on")
module(load="imptcp")
input(type="imptcp" path="{directory}/stream.sock" unlink="on")
$ModLoad omuxsock
$OMUxSockSocket {directory}/{CANARY_SOCKET_NAME}
$ActionResumeInterval 1
template(name="canary" type="string" string="%msg% %$!lines% %$!even% %$!odd% %$!started%")
if $programname == "{CANARY_TAG}" then {{
  if $/started == "" then set $/started = $timegenerated;
  set $!started = $/started;
  set $!lines = $/lines + $/even + $/odd;
  set $!even = $/even + 0;
  set $!odd = $/odd + 0;
  :omuxsock:;canary
  stop
}}
if $programname == "haproxy" and $syslogseverity < 6 then stop
if $inputname == "imptcp" and $syslogfacility == 16 then set $/even = $/even + 1;
else if $inputname == "imptcp" and $syslogfacility == 17 then set $/odd = $/odd + 1;
else if $inputname != "rsyslogd" then set $/lines = $/lines + 1;
{load}*.* {action}
"""


class Returned(msgspec.Struct, frozen=True):
    """What rsyslog says with a canary."""

    name: str
    lines: int
    """The access lines since its start."""
    of_ring: tuple[int, ...]
    """Those of them with each of the ring's facilities; empty if it does not say."""
    started: str
    """When its first canary came."""


_RETURNED = re.compile(
    r"\s*(?P<name>\S+)(?: (?P<lines>\d*))?(?: (?P<even>\d+) (?P<odd>\d+))? *(?P<started>.*)",
    re.DOTALL,
)


def returned_canary(text: str) -> Returned | None:
    """The canary in a datagram of rsyslog; None if it is none."""
    if (match := _RETURNED.fullmatch(text)) is None:
        return None
    of_ring = (int(match["even"]), int(match["odd"])) if match["even"] else ()
    return Returned(match["name"], int(match["lines"] or 0), of_ring, match["started"].strip())
