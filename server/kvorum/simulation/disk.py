"""The disk of one simulated node: a `FileSystem` in memory that outlives the node's processes.

A process gets its view with `mount`; `crash` ends the process, and with it every handle and lock,
and may cut the power too. A mounted view runs `before_call` before every call, so that the world
may crash the node exactly there by raising CrashedError. From then on the view is dead, and refuses
in the same way every call that the crashed code still makes while it unwinds.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection
from os import strerror
from pathlib import Path
from random import Random

from kvorum.simulation.disk_faults import (
    CrashedError,
    FileKind,
    FlippedBit,
    PowerCut,
    Refusal,
    kind_of,
)
from kvorum.simulation.disk_files import DiskDirectory, DiskFile, NameChange
from kvorum.simulation.faults import FaultKind
from kvorum.storage.files import HeldLock, OpenFile


def _system_error(number: int) -> OSError:
    return OSError(number, strerror(number))


class SimulatedDisk:
    """The files of one node.

    `note` is called for every fault that strikes, with a short description. All random choices are
    drawn from `random`, in the order of the calls.
    """

    def __init__(
        self,
        random: Random,
        *,
        before_call: Callable[[str, Path], None] = lambda _operation, _path: None,
        note: Callable[[FaultKind, str], None] = lambda _fault, _text: None,
    ) -> None:
        self.before_call = before_call
        self.note = note
        # Files of these kinds may have lost durable bytes.
        self.damaged_kinds: set[FileKind] = set()
        self._random = random
        self._directories: dict[str, DiskDirectory] = {}
        self._mounted: MountedDisk | None = None
        self._refusals: list[Refusal] = []
        self._failing_syncs: list[frozenset[FileKind]] = []

    def mount(self) -> MountedDisk:
        """Return the view of a new process; the one before it is dead."""
        if self._mounted is not None:
            self._mounted.die()
        self._mounted = MountedDisk(self)
        return self._mounted

    def inspect(self) -> MountedDisk:
        """Return a view that no fault strikes and that never runs `before_call`."""
        return MountedDisk(self, is_inspecting=True)

    def crash(self, *, is_power_cut: bool, is_scattering: bool = False) -> None:
        """End the process; with a power cut, unsynced bytes are lost, wholly or in part.

        Without a power cut the next process finds everything that was written, except in files
        whose sync failed. With `is_scattering` blocks arrive in any order, which a log may refuse.
        """
        if self._mounted is not None:
            self._mounted.die()
            self._mounted = None
        for path, directory in self._directories.items():
            if is_power_cut and directory.cut_power(self._random):
                self.note(FaultKind.LOST_NAME, f"names in {path}")
            for name in sorted(directory.names):
                file = directory.names[name]
                if is_power_cut or file.is_doomed:
                    self._cut_power(name, file, is_scattering=is_scattering)

    def _cut_power(self, name: str, file: DiskFile, *, is_scattering: bool) -> None:
        if file.is_synced:
            file.is_doomed = False
            return
        cut = PowerCut.draw(self._random, is_scattering=is_scattering)
        loss = file.cut_power(self._random, cut)
        if loss.lost_bytes and is_scattering:
            self.damaged_kinds.add(kind_of(name))
        if loss.lost_bytes:
            self.note(FaultKind.LOST_TAIL, f"{name}: up to {loss.lost_bytes} bytes")
        if loss.is_torn:
            self.note(FaultKind.TORN_WRITE, f"{name}: at {cut.block_bytes} bytes")

    def refuse_writes(
        self, kinds: Collection[FileKind], *, error: int = errno.ENOSPC, calls: int | None = None
    ) -> None:
        """Make writes to files of these kinds fail: the next `calls`, or until `accept_writes`."""
        self._refusals.append(Refusal(frozenset(kinds), error, calls))

    def accept_writes(self) -> None:
        """End every refusal, as when space was freed."""
        self._refusals.clear()

    def fail_next_sync(self, kinds: Collection[FileKind]) -> None:
        """Make the next sync of such a file fail; the next start finds its unsynced bytes lost."""
        self._failing_syncs.append(frozenset(kinds))

    def forget_faults(self) -> None:
        """Drop every fault that has not struck yet."""
        self._refusals.clear()
        self._failing_syncs.clear()

    def flip_bit(
        self, kind: FileKind, *, is_allowed: Callable[[Path, bytes], bool] | None = None
    ) -> FlippedBit | None:
        """Flip a random bit in a file of that kind; return None without such a byte.

        The bit is drawn again, a few times, where `is_allowed` refuses the resulting content.
        """
        files = [
            (Path(path) / name, file)
            for path, directory in sorted(self._directories.items())
            for name, file in sorted(directory.names.items())
            if kind_of(name) is kind and file.content and not name.endswith((".part", ".tmp"))
        ]
        for _ in range(20 if files else 0):
            path, file = self._random.choice(files)
            flipped = FlippedBit(
                path, self._random.randrange(len(file.content)), self._random.randrange(8)
            )
            file.flip(flipped.position, flipped.bit)
            if is_allowed is None or is_allowed(path, bytes(file.content)):
                self.damaged_kinds.add(kind)
                self.note(FaultKind.BIT_FLIP, f"{path.name}: bit {flipped.bit} of {flipped[1]}")
                return flipped
            file.flip(flipped.position, flipped.bit)
        return None

    def wipe(self) -> None:
        """Lose every file, as when the disk is replaced; the process must be gone."""
        self._directories.clear()
        self.damaged_kinds.clear()
        self.forget_faults()
        self.note(FaultKind.WIPE, "all files")

    def copy(self, random: Random) -> SimulatedDisk:
        """Return an independent disk with the same files, for a trial."""
        other = SimulatedDisk(random)
        other._directories = {path: one.copy() for path, one in self._directories.items()}
        return other

    def directory_at(self, path: Path) -> DiskDirectory:
        """Return a directory; FileNotFoundError without one."""
        found = self._directories.get(str(path))
        if found is None:
            raise FileNotFoundError(errno.ENOENT, strerror(errno.ENOENT), str(path))
        return found

    def has_directory(self, path: Path) -> bool:
        """Return whether a directory exists."""
        return str(path) in self._directories

    def directories_in(self, path: Path) -> list[str]:
        """Return the names of the directories in a directory."""
        above = f"{path}/"
        return [
            known.removeprefix(above)
            for known in self._directories
            if known.startswith(above) and "/" not in known.removeprefix(above)
        ]

    def make_directory(self, path: Path) -> None:
        """Create a directory and its parents; they are durable at once."""
        for one in (*reversed(path.parents), path):
            self._directories.setdefault(str(one), DiskDirectory())

    def remove_directory(self, path: Path) -> None:
        """Delete a directory with everything in it; that is durable at once."""
        below = f"{path}/"
        for name in list(self._directories):
            if name == str(path) or name.startswith(below):
                del self._directories[name]

    def rename_directory(self, source: Path, target: Path) -> None:
        """Give a directory another name, with everything in it; that is durable at once."""
        old, new = str(source), str(target)
        for name in list(self._directories):
            if name == old or name.startswith(f"{old}/"):
                self._directories[new + name.removeprefix(old)] = self._directories.pop(name)

    def demand_space(self, path: Path) -> None:
        """Raise OSError where a write to that file is to be refused."""
        for refusal in self._refusals:
            if refusal.strikes(kind_of(path.name)):
                self.note(FaultKind.REFUSED_WRITE, f"{path.name}: {errno.errorcode[refusal.error]}")
                raise _system_error(refusal.error)

    def part_of(self, size: int) -> int:
        """Draw how many bytes of a refused write were written before it failed."""
        return self._random.randint(0, size)

    def demand_sync(self, path: Path, file: DiskFile) -> None:
        """Raise OSError where a sync of that file is to fail, for good."""
        kind = kind_of(path.name)
        struck = next((one for one in self._failing_syncs if kind in one), None)
        if struck is not None:
            self._failing_syncs.remove(struck)
            file.is_doomed = True
            self.note(FaultKind.FAILED_SYNC, path.name)
            raise _system_error(errno.EIO)


class MountedDisk:
    """One process's view of its disk; see `kvorum.storage.files.FileSystem`."""

    def __init__(self, disk: SimulatedDisk, *, is_inspecting: bool = False) -> None:
        self.disk = disk
        self.is_inspecting = is_inspecting
        self.is_dead = False
        self._locked: set[str] = set()

    def die(self) -> None:
        """Refuse every call from now on."""
        self.is_dead = True

    def enter(self, operation: str, path: Path) -> None:
        """Note a call; raise CrashedError where the process is gone or crashes right here."""
        if self.is_dead:
            raise CrashedError(f"{operation} {path.name}: this process is gone")
        if self.is_inspecting:
            return
        try:
            self.disk.before_call(operation, path)
        except CrashedError:
            self.die()
            raise

    def demand_space(self, path: Path) -> None:
        """Raise OSError where the disk refuses a write."""
        if not self.is_inspecting:
            self.disk.demand_space(path)

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        """Open a file; with `create`, make an empty one if it does not exist."""
        self.enter("open", path)
        directory = self.disk.directory_at(path.parent)
        file = directory.names.get(path.name)
        if file is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, strerror(errno.ENOENT), str(path))
            file = self._create(directory, path)
        elif file.is_read_only and not read_only:
            raise PermissionError(errno.EACCES, strerror(errno.EACCES), str(path))
        return SimulatedOpenFile(path, file, self)

    def create_exclusively(self, path: Path) -> OpenFile:
        """Create and open a file that must not exist yet."""
        self.enter("create", path)
        directory = self.disk.directory_at(path.parent)
        if path.name in directory.names:
            raise FileExistsError(errno.EEXIST, strerror(errno.EEXIST), str(path))
        return SimulatedOpenFile(path, self._create(directory, path), self)

    def _create(self, directory: DiskDirectory, path: Path) -> DiskFile:
        self.demand_space(path)
        file = DiskFile()
        directory.change(NameChange(path.name, file))
        return file

    def exists(self, path: Path) -> bool:
        """Return whether a file or directory of that name exists."""
        self.enter("exists", path)
        if self.disk.has_directory(path):
            return True
        return (
            self.disk.has_directory(path.parent)
            and path.name in self.disk.directory_at(path.parent).names
        )

    def list_names(self, directory: Path) -> list[str]:
        """Return the names of all entries of a directory, sorted."""
        self.enter("list", directory)
        names = self.disk.directory_at(directory).names
        return sorted([*names, *self.disk.directories_in(directory)])

    def list_directories(self, directory: Path) -> list[str]:
        """Return the names of the directories in a directory, sorted."""
        self.enter("list", directory)
        return sorted(self.disk.directories_in(directory))

    def remove_directory(self, path: Path) -> None:
        """Delete a directory with everything in it; a missing one is not an error."""
        self.enter("remove directory", path)
        self.disk.remove_directory(path)

    def make_directory(self, path: Path) -> None:
        """Create a directory and its parents where they are missing."""
        self.enter("make directory", path)
        self.disk.make_directory(path)

    def rename(self, source: Path, target: Path) -> None:
        """Move a file over `target` in one step, or a directory; both lie in the same directory."""
        self.enter("rename", source)
        directory = self.disk.directory_at(source.parent)
        if source.parent != target.parent:
            raise _system_error(errno.EXDEV)
        if self.disk.has_directory(source):
            self.disk.rename_directory(source, target)
            return
        file = directory.names.get(source.name)
        if file is None:
            raise FileNotFoundError(errno.ENOENT, strerror(errno.ENOENT), str(source))
        directory.change(NameChange(target.name, file, old_name=source.name))

    def remove(self, path: Path) -> None:
        """Delete a file; a missing file is not an error."""
        self.enter("remove", path)
        directory = self.disk.directory_at(path.parent)
        if path.name in directory.names:
            directory.change(NameChange(path.name, None))

    def make_read_only(self, path: Path) -> None:
        """Make a file read-only for every process."""
        self.enter("make read-only", path)
        self.disk.directory_at(path.parent).names[path.name].is_read_only = True

    def modified_ms(self, path: Path) -> int:
        """Return when a file was last changed; 0 where that was never set."""
        self.enter("look", path)
        return self.disk.directory_at(path.parent).names[path.name].modified_ms

    def set_modified_ms(self, path: Path, time_ms: int) -> None:
        """Let a file count as last changed at another time."""
        self.enter("set time", path)
        self.disk.directory_at(path.parent).names[path.name].modified_ms = time_ms

    def sync_directory(self, directory: Path) -> None:
        """Make the names in `directory` durable."""
        self.enter("sync directory", directory)
        self.disk.directory_at(directory).sync()

    def lock(self, path: Path) -> HeldLock | None:
        """Lock a file, made if need be; return None where this process already has the lock."""
        self.enter("lock", path)
        directory = self.disk.directory_at(path.parent)
        if str(path) in self._locked:
            return None
        if path.name not in directory.names:
            self._create(directory, path)
        self._locked.add(str(path))
        return SimulatedLock(str(path), self._locked)


class SimulatedOpenFile:
    """An open file of a mounted disk."""

    __slots__ = ("_file", "_is_closed", "_mount", "path")

    def __init__(self, path: Path, file: DiskFile, mount: MountedDisk) -> None:
        self.path = path
        self._file = file
        self._mount = mount
        self._is_closed = False

    def _enter(self, operation: str) -> DiskFile:
        self._mount.enter(operation, self.path)
        if self._is_closed:
            raise _system_error(errno.EBADF)
        return self._file

    def shared_descriptor(self) -> None:
        """Return None: no system has this file."""

    def read_at(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes from `position`."""
        return bytes(memoryview(self._enter("read").content)[position : position + size])

    def write_at(self, position: int, data: bytes | memoryview) -> None:
        """Write all of `data` at `position`; where the disk refuses that, a first part of it."""
        file = self._enter("write")
        try:
            self._mount.demand_space(self.path)
        except OSError:
            file.write(position, bytes(data)[: self._mount.disk.part_of(len(data))])
            raise
        file.write(position, data)

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        self._enter("truncate").truncate(size)

    def size(self) -> int:
        """Return how many bytes the file has."""
        return len(self._enter("size").content)

    def sync(self) -> None:
        """Make the written bytes durable."""
        file = self._enter("sync")
        if not self._mount.is_inspecting:
            self._mount.disk.demand_sync(self.path, file)
        file.sync()

    def close(self) -> None:
        """Close the handle."""
        self._is_closed = True


class SimulatedLock:
    """A lock of a mounted disk."""

    __slots__ = ("_locked", "_path")

    def __init__(self, path: str, locked: set[str]) -> None:
        self._path = path
        self._locked = locked

    def release(self) -> None:
        """Release the lock for others."""
        self._locked.discard(self._path)
