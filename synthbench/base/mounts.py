"""Which file system holds a path: on network file systems, file locks and SQLite may fail."""

from pathlib import Path

MOUNTS = Path("/proc/self/mounts")
"""Linux's table of mounts: device, folder, type of file system, options."""
NETWORK = frozenset(
    (
        *(
            "nfs",
            "nfs4",
            "cifs",
            "smb3",
            "smbfs",
            "afs",
            "ceph",
            "lustre",
            "gpfs",
            "beegfs",
            "panfs",
            "wekafs",
        ),
        *("glusterfs", "pvfs2", "orangefs", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs"),
        *("fuse.gcsfuse", "fuse.rclone"),
    )
)
"""Types of file systems that several machines share."""


def network_file_system(path: Path) -> str:
    """Return the type of the network file system that holds a path, "" for a local one or if unknown."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        return ""
    real = path.resolve()
    found = [
        (len(folder.parts), kind)
        for _, name, kind, *_ in (line.split(" ") for line in lines if line.count(" ") > 2)
        # Spaces and the like are written as octal escapes.
        if real.is_relative_to(folder := Path(name.encode().decode("unicode_escape")))
    ]
    # The last of several mounts on one folder counts.
    kind = max(reversed(found), default=(0, ""), key=lambda mount: mount[0])[1]
    return kind if kind in NETWORK else ""
