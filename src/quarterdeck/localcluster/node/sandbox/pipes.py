"""What is left in a pipe when its writer has ended."""

import fcntl
import os
import struct
import termios
from collections.abc import Callable


def take_what_is_there(descriptor: int, take: Callable[[bytes], None]) -> None:
    """Read what is in a pipe now, and no more.

    A process may have handed its end of the pipe to one that outlives it: whoever reads to the end
    reads for as long as that one writes.
    """
    answer = fcntl.ioctl(descriptor, termios.FIONREAD, struct.pack("i", 0))
    (left,) = struct.unpack("i", answer)
    while left > 0 and (chunk := os.read(descriptor, left)):
        take(chunk)
        left -= len(chunk)
