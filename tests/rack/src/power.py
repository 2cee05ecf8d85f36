#!/usr/bin/env python3
"""The power switch of one server of the rack: power on|off|cycle|reset|status. Talks QMP with its QEMU, which lives
on while the server is off: an off server is one that was reset and does not run."""
import json
import os
import socket
import sys

SOCKET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "power.socket")


def main(words):
    if len(words) != 1 or words[0] not in ("on", "off", "cycle", "reset", "status"):
        sys.exit("usage: power on|off|cycle|reset|status")
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    try:
        connection.connect(SOCKET)
    except OSError as error:
        sys.exit(f"power: cannot reach the server's power switch: {error}")
    stream = connection.makefile("rw")

    def command(name):
        stream.write(json.dumps({"execute": name}) + "\n")
        stream.flush()
        while True:
            line = stream.readline()
            if not line:
                sys.exit("power: the server's power switch is gone")
            answer = json.loads(line)
            if "error" in answer:
                sys.exit("power: " + answer["error"]["desc"])
            if "return" in answer:
                return answer["return"]

    stream.readline()
    command("qmp_capabilities")
    is_on = command("query-status")["status"] == "running"
    if words[0] == "status":
        print("on" if is_on else "off")
        return
    steps = {
        "on": [] if is_on else ["system_reset", "cont"],
        "off": ["stop", "system_reset"],
        "cycle": ["stop", "system_reset", "cont"],
        "reset": ["system_reset"] if is_on else [],
    }
    for step in steps[words[0]]:
        command(step)


main(sys.argv[1:])
