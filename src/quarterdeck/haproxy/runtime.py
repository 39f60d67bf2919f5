"""What can change while HAProxy runs, as commands for its admin socket. Pure.

Everything else needs a reload, which costs a worker and the last lines in its ring.
"""

import msgspec

from quarterdeck.haproxy.model import Backend, Config
from quarterdeck.haproxy.render import certificate_path


def runtime_commands(running: Config, wanted: Config) -> list[str] | None:
    """The commands that make the running configuration the wanted one; None if they cannot.

    They change the addresses in slots, and the content of certificates.
    """
    if _structure(running) != _structure(wanted):
        return None
    commands = []
    for before, after in zip(running.backends, wanted.backends, strict=True):
        commands += _slot_commands(before, after)
    for old, new in zip(running.certificates, wanted.certificates, strict=True):
        if old.pem != new.pem:
            # The empty line ends the content; a PEM has none.
            path = certificate_path(new.name)
            content = "\n".join(line for line in new.pem.splitlines() if line)
            commands += [f"set ssl cert {path} <<\n{content}\n", f"commit ssl cert {path}"]
    return commands


def _structure(config: Config) -> Config:
    """The configuration without what commands can change."""
    return msgspec.structs.replace(
        config,
        backends=tuple(Backend(one.name, (None,) * len(one.slots)) for one in config.backends),
        certificates=tuple(msgspec.structs.replace(one, pem="") for one in config.certificates),
    )


def _slot_commands(before: Backend, after: Backend) -> list[str]:
    leaving, coming = [], []
    for number, (old, new) in enumerate(zip(before.slots, after.slots, strict=True)):
        if old == new:
            continue
        server = f"{after.name}/s{number}"
        if old is not None:
            leaving.append(f"set server {server} state maint")
        if new is not None:
            coming.append(f"set server {server} addr {new.address} port {new.port}")
            coming.append(f"set server {server} state ready")
    # First the new ones, so that the backend is never empty; a slot that changes hands has to
    # leave first, and is in both lists.
    changing = {command.split()[2] for command in leaving} & {cmd.split()[2] for cmd in coming}
    first = [command for command in coming if command.split()[2] not in changing]
    last = [command for command in coming if command.split()[2] in changing]
    return first + leaving + last
