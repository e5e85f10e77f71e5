"""Bugs in the log on disk, in snapshots, and in what a node stores of its promises."""

from __future__ import annotations

from tests.mutation.mutant import Edit, Kind, Mutant

STORAGE = "storage/kvorum/storage"
NODE_RAFT = "server/kvorum/node/raft"

MUTANTS = (
    Mutant(
        id="KAFKA-14618",
        cause="a snapshot was named after the offset before its end",
        breaks="P9",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                "server/kvorum/node/snapshot_keeper.py",
                "                end_offset=self._loader.last_offset + 1,\n",
                "                end_offset=self._loader.last_offset,\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-14619",
        cause="a snapshot ended within a batch",
        breaks="P9",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{STORAGE}/log.py",
                "        if not self.is_batch_boundary(snapshot_id.offset):\n"
                '            raise self._invalid_snapshot(snapshot_id, "lies within a batch")\n',
                "",
            ),
        ),
    ),
    Mutant(
        id="snapshot above the high watermark",
        cause="a snapshot held what was not committed",
        breaks="P9",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{STORAGE}/log.py",
                "        if snapshot_id.offset > high_watermark:\n",
                "        if snapshot_id.offset > max(high_watermark, self._end_offset):\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-14238",
        cause="the log was deleted beyond its latest snapshot",
        breaks="P9",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{STORAGE}/log.py",
                "            segment_count = "
                "self._segments.delete_before(snapshot_id.offset, now_ms=now_ms)\n",
                "            segment_count = "
                "self._segments.delete_before(self._end_offset, now_ms=now_ms)\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-14240",
        cause="a log was opened that no snapshot covers the start of",
        breaks="P9",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{STORAGE}/snapshots.py",
                "        if log_start_offset > 0 and not self._ids:\n",
                "        if log_start_offset > 0 and not found:\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-15312",
        cause="a snapshot got its final name before its bytes were synced",
        breaks="P8",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{STORAGE}/snapshots.py",
                "            self._file.sync()\n            self._file.close()\n",
                "            self._file.close()\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-15412",
        cause="a quorum-state of an unknown version was read all the same",
        breaks="P21",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{STORAGE}/quorum_state.py",
                "    if not 0 <= version <= VERSION_MAX:\n",
                "    if version < 0:\n",
            ),
        ),
    ),
    Mutant(
        id="empty quorum-state",
        cause="a quorum-state that is damaged counted as none, and the node voted anew",
        breaks="P21",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{STORAGE}/quorum_state.py",
                "        return None if data is None else decode_quorum_state(data, self.path)\n",
                "        if data is None:\n"
                "            return None\n"
                "        try:\n"
                "            return decode_quorum_state(data, self.path)\n"
                "        except CorruptFileError:\n"
                "            return None\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-14104",
        cause="fetched batches were not checked against their checksums",
        breaks="P22",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{NODE_RAFT}/control_records.py",
                "        batch.verify()\n",
                "",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-14104 from disk",
        cause="batches read back from the log were not checked against their checksums",
        breaks="P22",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{NODE_RAFT}/directory.py",
                "            batch.verify()\n",
                "",
            ),
        ),
    ),
    Mutant(
        id="failed fsync tried again",
        cause="a sync that had failed was tried again, and its success believed",
        breaks="P21",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{STORAGE}/log.py",
                "            with self._poisoning():\n                segment.sync()\n"
                "                self._flushed_file.write(target, durably=False)\n",
                "            segment.sync()\n"
                "            self._flushed_file.write(target, durably=False)\n",
            ),
        ),
    ),
    Mutant(
        id="durable by append",
        cause="records counted as durable when they were written, not when they were synced",
        breaks="P6",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{STORAGE}/log.py",
                "        self._end_offset = segment.end_offset\n\n    def _assign_epoch",
                "        self._end_offset = segment.end_offset\n"
                "        self._durable_offset = segment.end_offset\n\n    def _assign_epoch",
            ),
        ),
    ),
    Mutant(
        id="quorum-state renamed without a sync",
        cause="the file that holds the vote could be lost or empty after a power cut",
        breaks="P2",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{STORAGE}/files.py",
                "        handle.write_at(0, data)\n        handle.sync()\n",
                "        handle.write_at(0, data)\n",
            ),
        ),
    ),
    Mutant(
        id="hashicorp/raft#697 on disk",
        cause="installing a snapshot kept the old records in the log's files",
        breaks="P4",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{STORAGE}/log.py",
                "            self._segments.replace_all(offset, now_ms=now_ms)\n"
                "            self._start_offset = offset\n",
                "            self._start_offset = offset\n",
            ),
        ),
    ),
    Mutant(
        id="epochs kept when truncating",
        cause="leader-epoch-checkpoint kept epochs whose records were cut off",
        breaks="P4",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{STORAGE}/log.py",
                "            self._take_end_from_segments()\n"
                "            self._forget_epochs_from(self._end_offset)\n",
                "            self._take_end_from_segments()\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-15078",
        cause="a node replayed a long log although there was a newer snapshot",
        breaks="L3",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                f"{STORAGE}/log.py",
                "        if latest is None or latest <= end:\n            return False\n",
                "        if latest is None or latest.offset >= 0:\n            return False\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-13078",
        cause="a snapshot was finished without its last batch",
        breaks="P9",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{NODE_RAFT}/snapshot_files.py",
                "    writer.append(build_control_batch(footer, base_offset=offset, epoch=epoch, "
                "timestamp_ms=now_ms))\n",
                "    del footer\n",
            ),
        ),
    ),
    Mutant(
        id="half a snapshot installed",
        cause="a fetched snapshot was installed without being looked at",
        breaks="P22",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{NODE_RAFT}/snapshot_files.py",
                "        check_snapshot(writer)\n        writer.freeze()\n",
                "        writer.freeze()\n",
            ),
        ),
    ),
    Mutant(
        id="apache/kafka#11386",
        cause="loading a snapshot took the offset of the wrong end",
        breaks="P9",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                "server/kvorum/node/metadata_loader.py",
                "        last_offset = snapshot.end_offset - 1\n",
                "        last_offset = snapshot.end_offset\n",
            ),
        ),
    ),
    Mutant(
        id="voters of an older snapshot",
        cause="a restarted node took its voters from a snapshot and forgot the log behind it",
        breaks="P12",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{NODE_RAFT}/directory.py",
                "        for offset, voters in found.voters:\n            "
                "history.add_voters(offset, voters)\n",
                "",
            ),
        ),
    ),
    Mutant(
        id="snapshot without voters",
        cause="a snapshot did not hold the voters, so who loaded it had none",
        breaks="P12",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{NODE_RAFT}/snapshot_files.py",
                "        *quorum_control_records(controls.kraft_version, controls.voters),\n",
                "",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-14644",
        cause="a replica whose disk failed went on",
        breaks="P21",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{NODE_RAFT}/driver.py",
                "        self._is_flushing = False\n        if error is not "
                "None:\n            self.fail(error)\n",
                "        self._is_flushing = False\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-14275",
        cause="a node that could not apply what was committed went on",
        breaks="P21",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{NODE_RAFT}/driver.py",
                "        except Exception as error:  # noqa: BLE001 - whatever "
                "it is, the replica must not go on\n"
                "            self.fail(error)\n",
                "        except Exception:  # noqa: BLE001 - a bug that is put in\n"
                "            pass\n",
            ),
        ),
    ),
    Mutant(
        id="write awaited by nobody",
        cause="answers did not wait for the election record to be stored",
        breaks="P2",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{NODE_RAFT}/driver.py",
                "    def _write_election(self, write: WriteElection) -> None:\n"
                "        self._is_blocked = True\n",
                "    def _write_election(self, write: WriteElection) -> None:\n",
            ),
        ),
    ),
    Mutant(
        id="remembered batch of a truncated log",
        cause="a batch that was cut off was handed to the state machine as if it was committed",
        breaks="P17",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{NODE_RAFT}/driver.py",
                "        self.applier.forget_from(end_offset)\n",
                "",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-14300",
        cause="only a node that does not lead took snapshots",
        breaks="L3",
        kind=Kind.LIVENESS,
        edits=(
            Edit(
                "server/kvorum/node/snapshot_keeper.py",
                "        if self._task is not None or not (is_full or is_old):\n",
                "        if self._task is not None or not (is_full and is_old):\n",
            ),
        ),
    ),
    Mutant(
        id="KAFKA-17426",
        cause="two directories with the same id were taken into use",
        breaks="P15",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{STORAGE}/meta_properties_ensemble.py",
                "            _check_directory_id(entry.directory_id, directory, owners)\n",
                "",
            ),
        ),
    ),
    Mutant(
        id="a rotten offset passes for the next",
        cause="a batch whose offset had rotted was read as the one behind it",
        breaks="P22",
        kind=Kind.SAFETY,
        edits=(
            Edit(
                f"{STORAGE}/segment.py",
                "            if header.base_offset != expected:\n",
                "            if header.base_offset < 0:\n",
            ),
        ),
    ),
)
