"""Images of the Open Container Initiative as bytes: types, layers, archives, signatures.

No registry, no cluster and no time: who fetches or stores the bytes is elsewhere. What is read may
be hostile, so every size is bounded and nothing but what is asked for is unpacked.
"""
