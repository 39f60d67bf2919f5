"""The settings of the operator."""

from datetime import timedelta

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the operator `subscriptions`."""

    catalog_root: str = ""
    """The directory below which CatalogSources may name directories; none by default."""

    catalog_interval: timedelta = timedelta(seconds=20)
    """How often a directory with a catalog is checked for changes."""
