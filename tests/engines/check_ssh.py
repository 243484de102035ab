#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/recipes/ssh.sh with three hosts that are all a sshd of this machine, with keys and a port of its own."""

import os
import shutil
import sys

from marked import Marked, wait_until
from planned import Planned, need_programs, run_checks
from ref_protocol import Skip
from slurm import free_ports
from test_ssh import pack_on_three_machines

SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PasswordAuthentication no
StrictModes no
UsePAM no
PidFile none
ForceCommand env '{mark}' 'PATH={path}' sh -c "$SSH_ORIGINAL_COMMAND"
"""
CLIENT = """\
Host one two three
  HostName 127.0.0.1
  Port {port}
  IdentityFile {folder}/user_key
  StrictHostKeyChecking no
  UserKnownHostsFile {folder}/known_hosts
"""
SSH = """#!/bin/sh
echo "on $3"
exec {ssh} -F {folder}/client "$@"
"""


def three_hosts_with_kills(folder):
    need_programs("ssh", "sshd", "ssh-keygen")
    try:
        os.makedirs("/run/sshd", exist_ok=True)  # where sshd of root wants to be
    except OSError as error:
        raise Skip(str(error)) from None
    with Marked(folder) as marked:
        planned = Planned(folder, marked)
        own = folder / "ssh"
        own.mkdir()
        names = {"folder": own, "port": free_ports(1)[0], "ssh": shutil.which("ssh"), "mark": marked.mark,
                 "path": marked.environment["PATH"]}
        for key in ("host_key", "user_key"):
            marked.call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", own / key)
        (own / "server").write_text(SERVER.format(**names))
        (own / "client").write_text(CLIENT.format(**names))
        with open(own / "server.log", "wb") as log:
            marked.start(shutil.which("sshd"), "-D", "-e", "-f", own / "server", stdout=log, stderr=log)
        wait_until(lambda: "listening" in (own / "server.log").read_text(), "sshd listens")
        return pack_on_three_machines(folder, marked, SSH.format(**names), planned)


if __name__ == "__main__":
    sys.exit(run_checks("ssh: "))
