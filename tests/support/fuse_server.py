# SPDX-License-Identifier: Apache-2.0
"""A FUSE file system that shows a folder, and does to its readers and writers what file systems of clusters do.

    from fuse_server import Fuse
    with Fuse(source, mount_point, latency=0.03) as fuse:       # each read takes 30 ms, many at a time
        fuse.set(latency=0, bad=["P.bin", 1000, 2000, "EIO"])   # from now on; bad=None takes it back
        fuse.lose()                                             # the server dies: reads give ENOTCONN

A process of its own speaks the kernel's protocol over /dev/fuse; no library is needed. See `mounts.py` for the private
namespace, in which the mount is seen by nobody else and ends with the test. The settings, all optional:

    latency      seconds that each read request takes; requests run side by side
    names        seconds that each request takes that looks a name up or opens a file [0]
    bad          [NAME, FROM, TO, ERROR]: reads of files with this name that touch these bytes fail; NAME may be None
    refuse       {"RENAME": "ENOSYS", ...}: requests of these names fail
    flock        what locks do, given at the start only: "here" (the kernel of this machine alone), "nfs" (as byte
                 ranges: an exclusive lock needs a file that is open for writing), or the name of an error
    attributes   seconds for which the kernel keeps what it knows of a file, given at the start only [0; libfuse: 1]
    entries      seconds for which the kernel keeps what a name leads to, given at the start only [0; libfuse: 1]
    sequential   True: a file is written once, from front to back, and no file of any other kind is opened for writing

    side_by_side how many requests are served at one time, given at the start only [64]
    ahead        KiB that the kernel reads ahead, given at the start only [128, as on NFS]

As on NFS, the cache of a file survives its closing: drop it with POSIX_FADV_DONTNEED. A file that is replaced in
`source` is another file to those who open it 10 ms later; who has the old one open reads it, unless `bad` says ESTALE.
"""
import ctypes
import errno
import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time

NAMES = dict(LOOKUP=1, FORGET=2, GETATTR=3, SETATTR=4, READLINK=5, SYMLINK=6, MKDIR=9, UNLINK=10, RMDIR=11, RENAME=12,
             LINK=13, OPEN=14, READ=15, WRITE=16, STATFS=17, RELEASE=18, FSYNC=20, FLUSH=25, INIT=26, OPENDIR=27,
             READDIR=28, RELEASEDIR=29, FSYNCDIR=30, SETLK=32, SETLKW=33, CREATE=35, INTERRUPT=36, DESTROY=38,
             BATCH_FORGET=42, RENAME2=45)
# Of INIT: reads side by side, O_TRUNC in OPEN, writes and reads of up to 1 MiB, the cache follows the times.
ASYNC_READ, ATOMIC_O_TRUNC, BIG_WRITES, FLOCK_LOCKS, AUTO_INVAL, ASYNC_DIO, PARALLEL_DIROPS, MAX_PAGES = (
    1 << bit for bit in (0, 3, 5, 10, 12, 15, 18, 22))
KEEP_CACHE = 1 << 1     # of OPEN
LARGEST = 1 << 20
libc = ctypes.CDLL(None, use_errno=True)


class Fuse:
    """The file system `source` at `mount_point`, both existing folders. OSError where it may not be mounted."""

    def __init__(self, source, mount_point, **settings):
        self.mount_point = str(mount_point)
        self.process = subprocess.Popen([sys.executable, __file__, str(source), str(mount_point), json.dumps(settings)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        answer = self.process.stdout.readline()
        if answer != "ok\n":
            self.close()
            raise OSError(int(answer or errno.EIO), "cannot mount FUSE: " + os.strerror(int(answer or errno.EIO)))

    def set(self, **settings):
        self.ask(settings)

    def n_reads(self):
        """The read requests so far, and the largest number of them at one time."""
        return self.ask(None)[:2]

    def n_requests(self):
        """The same, with those that look names up and open files."""
        return self.ask(None)[2:]

    def ask(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def lose(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.lose()
        self.process.stdin.close()
        self.process.stdout.close()
        libc.umount2(self.mount_point.encode(), 2)     # MNT_DETACH

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Server:
    """Nodes are files of the folder by inode, each held by a descriptor with O_PATH, so that renaming needs nothing."""

    def __init__(self, source, settings):
        self.settings = dict({"latency": 0, "bad": None, "refuse": {}, "flock": "here", "sequential": False,
                              "names": 0, "entries": 0, "attributes": 0, "side_by_side": 64}, **settings)
        self.guard = threading.Lock()
        self.n_reads = self.n_now = self.most = 0
        self.n_requests = self.n_requests_now = self.most_requests = 0
        self.interrupted = set()
        self.nodes = {1: [os.open(source, os.O_PATH), 1]}      # node: [descriptor, lookups]
        self.ends = {}                                         # open file: bytes written, for `sequential`

    # -- the protocol

    def mount(self, mount_point):
        self.device = os.open("/dev/fuse", os.O_RDWR)
        options = "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions" % self.device
        if libc.mount(b"tests", mount_point.encode(), b"fuse.tests", 6, options.encode()) != 0:    # NOSUID, NODEV
            raise OSError(ctypes.get_errno(), "mount")

    def serve(self):
        while True:
            try:
                request = os.read(self.device, LARGEST + 4096)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT):
                    continue
                return                                         # unmounted
            _, operation, unique, node = struct.unpack_from("=IIQQ", request)
            try:
                answer = self.answer(operation, unique, node, request[40:])
                number = 0
            except OSError as error:
                answer, number = b"", error.errno
            if answer is not None:
                try:
                    os.write(self.device, struct.pack("=IiQ", 16 + len(answer), -number, unique) + answer)
                except OSError:
                    pass                                       # interrupted, or unmounted

    def answer(self, operation, unique, node, body):
        name = next((name for name, number in NAMES.items() if number == operation), None)
        refused = self.settings["refuse"].get(name)
        if name is None or refused:
            raise OSError(getattr(errno, refused or "ENOSYS"), name)
        if name in ("LOOKUP", "OPEN", "READ"):
            return self.in_time(name, node, body)
        return getattr(self, name.lower())(node, body, unique) if name in ("SETLK", "SETLKW", "INTERRUPT") else \
            getattr(self, name.lower())(node, body)

    def in_time(self, name, node, body):
        with self.guard:
            self.n_requests += 1
            self.n_requests_now += 1
            self.most_requests = max(self.most_requests, self.n_requests_now)
        try:
            if name != "READ":
                time.sleep(self.settings["names"])
            return getattr(self, name.lower())(node, body)
        finally:
            with self.guard:
                self.n_requests_now -= 1

    def init(self, _, body):
        _, minor, ahead, offered = struct.unpack_from("=IIII", body)
        flags = ASYNC_READ | ATOMIC_O_TRUNC | BIG_WRITES | AUTO_INVAL | ASYNC_DIO | PARALLEL_DIROPS | MAX_PAGES
        if self.settings["flock"] != "here":
            flags |= FLOCK_LOCKS
        return struct.pack("=IIIIHHIIHHI", 7, min(minor, 31), max(ahead, LARGEST), flags & offered,
                           self.settings["side_by_side"], self.settings["side_by_side"] * 3 // 4, LARGEST, 1,
                           LARGEST // 4096, 0, 0) + bytes(28)

    def destroy(self, *_):
        return b""

    # -- names

    def path(self, node, name=b""):
        place = b"/proc/self/fd/%d" % self.nodes[node][0]
        return place + b"/" + name.split(b"\0")[0] if name else place

    def attributes(self, path, follow=False):
        s = os.stat(path, follow_symlinks=follow)
        times = s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns
        return s, struct.pack("=6Q10I", s.st_ino, s.st_size, s.st_blocks, *(t // 10**9 for t in times),
                              *(t % 10**9 for t in times), s.st_mode, s.st_nlink, s.st_uid, s.st_gid, s.st_rdev, 4096, 0)

    def entry(self, path):
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW)
        s, attributes = self.attributes(b"/proc/self/fd/%d" % descriptor, True)
        with self.guard:
            node = self.nodes.setdefault(s.st_ino, [descriptor, 0])
            node[1] += 1
            if node[0] != descriptor:
                os.close(descriptor)
        # Names are valid for a nanosecond, which the kernel rounds up to a tick; with 0 it drops a closed file's cache.
        return struct.pack("=QQQQII", s.st_ino, 0, self.settings["entries"], self.settings["attributes"], 1, 0) + attributes

    def lookup(self, node, body):
        return self.entry(self.path(node, body))

    def forget(self, node, body):
        with self.guard:
            self.nodes[node][1] -= struct.unpack_from("=Q", body)[0]
            if self.nodes[node][1] == 0:
                os.close(self.nodes.pop(node)[0])

    def batch_forget(self, _, body):
        for node, n in struct.iter_unpack("=QQ", body[8:8 + 16 * struct.unpack_from("=I", body)[0]]):
            self.forget(node, struct.pack("=Q", n))

    def getattr(self, node, _):
        return struct.pack("=QQ", self.settings["attributes"], 0) + self.attributes(self.path(node), True)[1]

    def setattr(self, node, body):
        valid, _, _, size, _, atime, mtime, _, atime_ns, mtime_ns, _, mode, _, uid, gid = struct.unpack_from(
            "=IIQQQQQQIIIIIII", body)
        path = self.path(node)
        if valid & 8:
            if self.settings["sequential"]:
                raise OSError(errno.EPERM, "truncate")
            os.truncate(path, size)
        if valid & 1:
            os.chmod(path, mode & 0o7777)
        if valid & 6:
            os.chown(path, uid if valid & 2 else -1, gid if valid & 4 else -1)
        if valid & (16 | 32 | 128 | 256):
            s = os.stat(path)
            now = time.time_ns()
            os.utime(path, ns=(now if valid & 128 else atime * 10**9 + atime_ns if valid & 16 else s.st_atime_ns,
                               now if valid & 256 else mtime * 10**9 + mtime_ns if valid & 32 else s.st_mtime_ns))
        return self.getattr(node, b"")

    def readlink(self, node, _):
        return os.readlink(b"", dir_fd=self.nodes[node][0])

    def symlink(self, node, body):
        name, target = body.split(b"\0")[:2]
        os.symlink(target, self.path(node, name))
        return self.entry(self.path(node, name))

    def mkdir(self, node, body):
        os.mkdir(self.path(node, body[8:]), struct.unpack_from("=I", body)[0] & 0o7777)
        return self.entry(self.path(node, body[8:]))

    def unlink(self, node, body):
        os.unlink(self.path(node, body))
        return b""

    def rmdir(self, node, body):
        os.rmdir(self.path(node, body))
        return b""

    def link(self, node, body):
        old = self.path(struct.unpack_from("=Q", body)[0])
        if libc.linkat(-100, old, -100, self.path(node, body[8:]), 0x400) != 0:        # AT_SYMLINK_FOLLOW
            raise OSError(ctypes.get_errno(), "link")
        return self.entry(self.path(node, body[8:]))

    def rename(self, node, body, names=8, flags=0):
        old, new = body[names:].split(b"\0")[:2]
        to = self.path(struct.unpack_from("=Q", body)[0], new)
        if libc.renameat2(-100, self.path(node, old), -100, to, flags) != 0:
            raise OSError(ctypes.get_errno(), "rename")
        return b""

    def rename2(self, node, body):
        return self.rename(node, body, 16, struct.unpack_from("=QI", body)[1])

    # -- files

    def opened(self, path, flags, mode=0):
        writes = flags & os.O_ACCMODE != os.O_RDONLY
        if self.settings["sequential"] and writes and not flags & (os.O_CREAT | os.O_TRUNC):
            raise OSError(errno.EPERM, "open")
        file = os.open(path, flags & ~(os.O_DIRECT | os.O_NOFOLLOW | os.O_APPEND), mode)
        self.ends[file] = 0
        return struct.pack("=QIi", file, KEEP_CACHE, 0)

    def open(self, node, body):
        return self.opened(self.path(node), struct.unpack_from("=I", body)[0])

    opendir = open

    def create(self, node, body):
        flags, mode, umask, _ = struct.unpack_from("=IIII", body)
        path = self.path(node, body[16:])
        opened = self.opened(path, flags | os.O_CREAT, mode & ~umask & 0o7777)
        return self.entry(path) + opened

    def read(self, node, body):
        file, offset, size = struct.unpack_from("=QQI", body)
        with self.guard:
            self.n_reads += 1
            self.n_now += 1
            self.most = max(self.most, self.n_now)
        time.sleep(self.settings["latency"])
        with self.guard:
            self.n_now -= 1
        name, begin, end, error = self.settings["bad"] or (None, 0, 0, None)
        if offset < end and begin < offset + size and (
                not name or os.path.basename(os.readlink(self.path(node))) == os.fsencode(name)):
            raise OSError(getattr(errno, error), "read")
        return os.pread(file, size, offset)

    def write(self, _, body):
        file, offset, size = struct.unpack_from("=QQI", body)
        if self.settings["sequential"] and offset != self.ends[file]:
            raise OSError(errno.EINVAL, "write")
        written = os.pwrite(file, body[40:40 + size], offset)
        self.ends[file] = offset + written
        return struct.pack("=II", written, 0)

    def readdir(self, _, body):
        file, offset, size = struct.unpack_from("=QQI", body)
        answer = b""
        for number, name in enumerate([".", ".."] + sorted(os.listdir(file)), 1):
            record = struct.pack("=QQII", 0xffffffff, number, len(os.fsencode(name)), 0) + os.fsencode(name)
            record += bytes(-len(record) % 8)
            if number > offset:
                if len(answer) + len(record) > size:
                    break
                answer += record
        return answer

    def release(self, _, body):
        file, = struct.unpack_from("=Q", body)
        del self.ends[file]
        os.close(file)
        return b""

    releasedir = release

    def flush(self, *_):
        return b""

    def fsync(self, _, body):
        os.fsync(struct.unpack_from("=Q", body)[0])
        return b""

    fsyncdir = fsync

    def statfs(self, node, _):
        s = os.statvfs(self.path(node))
        return struct.pack("=5Q4I", s.f_blocks, s.f_bfree, s.f_bavail, s.f_files, s.f_ffree, s.f_bsize, s.f_namemax,
                           s.f_frsize, 0) + bytes(24)

    def setlk(self, _, body, unique, wait=False):
        file, _, _, _, kind = struct.unpack_from("=QQQQI", body)
        if self.settings["flock"] != "nfs":
            raise OSError(getattr(errno, self.settings["flock"]), "flock")
        writes = fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE
        if (kind, writes) in ((fcntl.F_WRLCK, os.O_RDONLY), (fcntl.F_RDLCK, os.O_WRONLY)):
            raise OSError(errno.EBADF, "flock")
        how = {fcntl.F_RDLCK: fcntl.LOCK_SH, fcntl.F_WRLCK: fcntl.LOCK_EX, fcntl.F_UNLCK: fcntl.LOCK_UN}[kind]
        while True:
            try:
                fcntl.flock(file, how | fcntl.LOCK_NB)
                return b""
            except BlockingIOError:
                if not wait:
                    raise
                if unique in self.interrupted:
                    self.interrupted.discard(unique)
                    raise OSError(errno.EINTR, "flock")
            time.sleep(0.01)

    def setlkw(self, node, body, unique):
        return self.setlk(node, body, unique, True)

    def interrupt(self, _, body, __):
        self.interrupted.add(struct.unpack_from("=Q", body)[0])


def main(source, mount_point, settings):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0)
    server = Server(source, json.loads(settings))
    try:
        server.mount(mount_point)
    except OSError as error:
        print(error.errno)
        return
    for _ in range(server.settings["side_by_side"]):
        threading.Thread(target=server.serve, daemon=True).start()
    if "ahead" in server.settings:
        device = os.stat(mount_point).st_dev
        with open("/sys/class/bdi/%d:%d/read_ahead_kb" % (os.major(device), os.minor(device)), "w") as file:
            file.write(str(server.settings["ahead"]))
    print("ok", flush=True)
    for line in sys.stdin:                     # it ends with the process that started the server
        question = json.loads(line)
        if question is not None:
            server.settings.update(question)
        print(json.dumps([server.n_reads, server.most, server.n_requests, server.most_requests]), flush=True)
    libc.umount2(mount_point.encode(), 2)


if __name__ == "__main__":
    main(*sys.argv[1:])
