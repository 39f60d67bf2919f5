"""Who is measured, and how each is started."""

import msgspec

from bench.goals import APPLYING, COMPARING, REFERENCE
from bench.tools import Tools


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A program to be measured."""

    name: str
    module: str = ""
    """Of the Python ones: the module in this package."""
    command: tuple[str, ...] = ()
    """Of the Go ones: the subcommand and its fixed flags."""
    ours: bool = False
    slow: bool = False
    """Takes so long, or says so little more, that once must be enough."""

    def start_with(self, tools: Tools) -> list[str] | str:
        """The start of the command line, or why there is none."""
        if self.command:
            return tools.go if isinstance(tools.go, str) else [str(tools.go), *self.command]
        python = tools.ours if self.ours else tools.peers
        if isinstance(python, str):
            return python
        return [str(python), "-m", f"bench.subjects.{self.module}"]


CACHES = (
    Subject(name="quarterdeck", module="quarterdeck_cache", ours=True),
    Subject(name="lightkube", module="lightkube_cache"),
    Subject(name="kubernetes-asyncio", module="kubernetes_asyncio_cache"),
    Subject(name="kubernetes", module="kubernetes_cache"),
    Subject(name="kr8s", module="kr8s_cache", slow=True),
    Subject(name="kopf", module="kopf_cache", slow=True),
    Subject(name="controller-runtime", command=("cache",)),
    Subject(name="controller-runtime, HTTP/1.1", command=("cache", "--http1")),
)

GENERATOR = "the generator's limit"
DRAIN = Subject(name=GENERATOR, command=("drain",))

OPERATORS = (
    Subject(name="quarterdeck", module="quarterdeck_operator", ours=True),
    Subject(name=REFERENCE, command=("operator",)),
    Subject(name=COMPARING, command=("operator", "--compare-status")),
    Subject(name="kopf", module="kopf_operator", slow=True),
)

AS_WE_DO = Subject(name=APPLYING, command=("operator", "--compare-status", "--apply"), slow=True)
