"""Quarterdeck: cache, queue and a reconcile that writes nothing."""

import asyncio

from bench.subjects.marks import Following, arguments
from bench.subjects.quarterdeck_widgets import WIDGETS, run
from quarterdeck.api.meta import Key
from quarterdeck.controller import DONE, Controller, Manager, Result, Watch


def main() -> None:
    args = arguments()
    following = Following(args.objects, args.last_round)

    def setup(manager: Manager) -> None:
        widgets = manager.objects(WIDGETS)

        async def reconcile(key: Key) -> Result:
            if (widget := widgets.get(key)) is not None:
                following.ran(key.name, widget.spec.round)
            return DONE

        manager.add(Controller("widget", reconcile, [Watch(widgets)], workers=args.workers))

    asyncio.run(run(setup, args.kubeconfig))


main()
