"""Runs a command where the network has nothing but ``lo``, which is brought up first: python loopback.py COMMAND."""

import os
import struct
import sys

SIOCSIFFLAGS, UP_AND_RUNNING = 0x8914, 0x41

if __name__ == "__main__":
    import fcntl
    import socket

    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", UP_AND_RUNNING))
    os.execvp(sys.argv[1], sys.argv[1:])
