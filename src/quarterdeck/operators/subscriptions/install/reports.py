"""What the installer found about the config of Subscriptions, for their status."""

import msgspec

from quarterdeck.api.meta import Key
from quarterdeck.operators.subscriptions.config.faults import ConfigFault, SelectorFault


class ConfigReport(msgspec.Struct, frozen=True, kw_only=True):
    """The faults of a Subscription's config with one ClusterServiceVersion."""

    generation: int
    """The generation of the Subscription that it is about."""
    faults: tuple[ConfigFault, ...] = ()
    selector_faults: tuple[SelectorFault, ...] = ()


class ConfigReports:
    """The last report for each ClusterServiceVersion, in memory: it follows from the objects."""

    def __init__(self) -> None:
        self._reports: dict[Key, ConfigReport] = {}

    def get(self, csv: Key) -> ConfigReport | None:
        """The report; None if the ClusterServiceVersion was not reconciled yet."""
        return self._reports.get(csv)

    def set(self, csv: Key, report: ConfigReport | None) -> bool:
        """Keep the report, or forget it; whether it changed."""
        if report is None:
            return self._reports.pop(csv, None) is not None
        if self._reports.get(csv) == report:
            return False
        self._reports[csv] = report
        return True
