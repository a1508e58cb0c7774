"""Which file system holds a path: on network file systems, file locks and SQLite may fail."""

from pathlib import Path

NETWORK = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "gpfs", "beegfs", "panfs"),
        *("glusterfs", "pvfs2", "orangefs", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs"),
        *("fuse.gcsfuse", "fuse.rclone", "wekafs"),
    )
)
"""Types of file systems that several machines share."""


def network_file_system(path: Path) -> str:
    """Return the type of the network file system that holds a path, "" for a local one or if unknown."""
    import psutil

    try:
        mounts = psutil.disk_partitions(all=True)
    except OSError:  # no table of mounts
        return ""
    real = path.resolve()
    found = [
        (len(folder.parts), mount.fstype)
        for mount in mounts
        if real.is_relative_to(folder := Path(mount.mountpoint))
    ]
    # The last of several mounts on one folder counts.
    kind = max(reversed(found), default=(0, ""), key=lambda mount: mount[0])[1]
    return kind if kind in NETWORK else ""
