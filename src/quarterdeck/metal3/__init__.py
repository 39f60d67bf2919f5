"""metal3: what runs to provision machines, and who manages it.

The machine API operator and the baremetal operator run the same metal3, so what it is made of lies
below both: the rules for its configuration (`validation`), its Deployment (`deployment`,
`containers`), its password, how far its roll-out is (`progress`), and which of the two operators
manages it (`handover`). `operand` reads and writes all this in a cluster. `model` explores each
update that hands it over.
"""
