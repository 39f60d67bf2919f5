"""The sidecar's rsyslog.conf, and the canary by which the router knows that lines arrive. Pure.

The router sends a request to a frontend of its own. Its line takes the way of all access lines,
with a tag of its own and an identifier as its text. rsyslog keeps it out of the log and hands it to
a second socket, which the router reads, with the number of access lines so far and the time
of the first canary since it started. Lines keep their order on the way, so the number is exact for
the moment of the canary.
"""

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
    - HAProxy's notices, which are more severe than access lines, are in the router's own output. Of
      level 2 (crit) it has none: that is the level of the lines of a worker that is being replaced.
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
template(name="canary" type="string" string="%msg% %$!lines% %$!started%")
if $programname == "{CANARY_TAG}" then {{
  if $/started == "" then set $/started = $timegenerated;
  set $!started = $/started;
  set $!lines = $/lines;
  :omuxsock:;canary
  stop
}}
if $programname == "haproxy" and $syslogseverity < 6 and $syslogseverity != 2 then stop
if $inputname != "rsyslogd" then set $/lines = $/lines + 1;
{load}*.* {action}
"""
