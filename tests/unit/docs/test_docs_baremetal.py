"""The figures in `docs/baremetal.md`: those of `docs/performance.md`."""

import re

from tests.places import DOCS


def test_the_cost_while_disabled_is_that_of_the_measurement() -> None:
    measured = (DOCS / "performance.md").read_text()
    _, _, section = measured.partition("`python -m bench.baremetal`")
    section, _, _ = section.partition("\n### ")
    (row,) = re.findall(r"^\| disabled \| (.*) \|$", section, re.MULTILINE)
    requests, lease, writes, _, memory = row.split(" | ")
    (seconds,) = re.findall(r"over (\d+) seconds", section)
    assert writes == "0"
    told = " ".join((DOCS / "baremetal.md").read_text().split())
    assert (
        f"{requests} requests a minute, and {lease} for its Lease; no write; {memory} of memory "
        f"(over {seconds} s, nothing else running)"
    ) in told
