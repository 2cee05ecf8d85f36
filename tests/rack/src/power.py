#!/usr/bin/env python3
"""The power switch of one server of the rack: power on|off|cycle|reset|status, boot pxe|disk. Talks QMP with its QEMU, which lives
on while the server is off: an off server is one that was reset and does not run."""
import json
import os
import socket
import sys

SOCKET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "power.socket")


def main(words):
    boots = words[:1] == ["boot"] and words[1:] in (["pxe"], ["disk"])
    if not boots and (len(words) != 1 or words[0] not in ("on", "off", "cycle", "reset", "status")):
        sys.exit("usage: power on|off|cycle|reset|status, or boot pxe|disk")
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    try:
        connection.connect(SOCKET)
    except OSError as error:
        sys.exit(f"power: cannot reach the server's power switch: {error}")
    stream = connection.makefile("rw")

    def command(name, **arguments):
        stream.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
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
    if boots:
        # The firmware reads the order at the next reset. It stays, as resets of the guest are not seen here.
        index = 0 if words[1] == "pxe" else 2
        for value in (-1, index):  # Its own present index counts as used.
            command("qom-set", path="/machine/peripheral/boot-net", property="bootindex", value=value)
        return
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
