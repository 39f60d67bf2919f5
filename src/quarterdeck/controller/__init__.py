"""What every operator runs on: queue, controller loop, manager, election, metrics, probes."""
