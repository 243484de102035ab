# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster of several nodes on this machine: munged, slurmctld and a slurmd for each node, with files and
ports of their own."""

import os
import pathlib
import pwd
import socket

from marked import Marked, wait_until

CONFIGURATION = """\
ClusterName=tokmap
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
SlurmctldPort={controller}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdLogFile={folder}/slurmd.%n.log
SlurmdSpoolDir={folder}/spool.%n
StateSaveLocation={folder}/state
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SchedulerParameters=sched_interval=2,sched_min_interval=0,defer
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdTimeout=20
KillWait=2
MinJobAge=3600
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP
"""


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Slurm(Marked):
    def __init__(self, folder, n_nodes=4):
        super().__init__(folder)
        self.folder, self.nodes = pathlib.Path(folder), ["n%d" % i for i in range(n_nodes)]
        self.environment["SLURM_CONF"] = str(self.folder / "slurm.conf")

    def __enter__(self):
        try:
            self.start_all()
        except BaseException:
            self.end_all()
            raise
        return self

    def start_all(self):
        folder, host = self.folder, socket.gethostname()
        controller, *ports = free_ports(1 + len(self.nodes))
        (folder / "state").mkdir()
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o600)
        text = CONFIGURATION.format(folder=folder, host=host, controller=controller, user=pwd.getpwuid(os.getuid()).pw_name)
        for name, port in zip(self.nodes, ports):
            (folder / ("spool." + name)).mkdir()
            text += "NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%d CPUs=8 State=UNKNOWN\n" % (name, host, port)
        (folder / "slurm.conf").write_text(text)
        self.start_logged("munged", "--foreground", "--force", "--key-file", folder / "munge.key", "--socket",
                          folder / "munge.socket", "--pid-file", folder / "munge.pid", "--log-file",
                          folder / "munged.own.log", "--seed-file", folder / "munge.seed", "--num-threads", "2")
        wait_until((folder / "munge.socket").exists, "munged listens")
        self.start_logged("slurmctld", "-D", "-c")
        for name in self.nodes:
            self.start_node(name)
        wait_until(lambda: self.states() == ["idle"] * len(self.nodes), "all nodes are idle: " + self.tail())

    def start_node(self, name):
        self.start_logged("slurmd", "-D", "-N", name, log="slurmd." + name)

    def start_logged(self, *command, log=None):
        with open(self.folder / ((log or command[0]) + ".out"), "ab") as out:
            return self.start(*command, stdout=out, stderr=out)

    def states(self):
        code, said = self.call("sinfo", "-h", "-N", "-o", "%t", check=False)
        return said.split() if code == 0 else []

    def tail(self):
        return " | ".join("%s: %s" % (path.name, path.read_text()[-1500:]) for path in self.folder.glob("*.log"))

    def jobs(self, job):
        """{number of the array task: its state} of those that the controller knows."""
        said = self.call("squeue", "-h", "-r", "-t", "all", "-j", job, "-o", "%K %T %r")[1]
        return {line.split()[0]: line.split()[1] for line in said.splitlines()}
