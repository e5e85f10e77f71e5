"""Bugs in the log on disk, in snapshots, and in what a node stores of its promises."""

from tests.model.mutation.mutant import liveness_bug, safety_bug

MUTANTS = (
    safety_bug(
        id="KAFKA-14618",
        cause="a snapshot was named after the offset before its end",
        breaks="P9",
        within="SnapshotGenerator._consider",
        old="self._loader.last_offset + 1",
        new="self._loader.last_offset",
    ),
    safety_bug(
        id="KAFKA-14619",
        cause="a snapshot ended within a batch",
        breaks="P9",
        within="MetadataLog.create_snapshot",
        old="""
            if not self.local_log.is_batch_boundary(snapshot_id.offset):
                raise self._invalid_snapshot(snapshot_id, "lies within a batch")
        """,
    ),
    safety_bug(
        id="snapshot above the high watermark",
        cause="a snapshot held what was not committed",
        breaks="P9",
        within="MetadataLog.create_snapshot",
        old="snapshot_id.offset > high_watermark",
        new="snapshot_id.offset > max(high_watermark, self.log_end_offset)",
    ),
    safety_bug(
        id="KAFKA-14238",
        cause="the log was deleted beyond its latest snapshot",
        breaks="P9",
        within="LocalLog.increment_log_start_offset",
        old="self._segments.delete_before(offset, now_ms=now_ms)",
        new="self._segments.delete_before(self.log_end_offset, now_ms=now_ms)",
    ),
    safety_bug(
        id="KAFKA-14240",
        cause="a log was opened that no snapshot covers the start of",
        breaks="P9",
        within="SnapshotStore.load",
        old="log_start_offset > 0 and not self._ids",
        new="log_start_offset > 0 and not found",
    ),
    safety_bug(
        id="KAFKA-15312",
        cause="a snapshot got its final name before its bytes were synced",
        breaks="P8",
        within="RawSnapshotWriter.freeze",
        old="self._file.sync()",
    ),
    safety_bug(
        id="KAFKA-15412",
        cause="a quorum-state of an unknown version was read all the same",
        breaks="P21",
        within="decode_quorum_state",
        old="not 0 <= version <= VERSION_MAX",
        new="version < 0",
    ),
    safety_bug(
        id="empty quorum-state",
        cause="a quorum-state that is damaged counted as none, and the node voted anew",
        breaks="P21",
        within="QuorumStateFile.read",
        old="return None if data is None else decode_quorum_state(data, self.path)",
        new="""
            if data is None:
                return None
            try:
                return decode_quorum_state(data, self.path)
            except CorruptFileError:
                return None
        """,
    ),
    safety_bug(
        id="KAFKA-14104",
        cause="fetched batches were not checked against their checksums",
        breaks="P22",
        within="read_fetched",
        old="batch.verify()",
    ),
    safety_bug(
        id="KAFKA-14104 from disk",
        cause="batches read back from the log were not checked against their checksums",
        breaks="P22",
        within="batches_of",
        old="batch.verify()",
    ),
    safety_bug(
        id="failed fsync tried again",
        cause="a sync that had failed was tried again, and its success believed",
        breaks="P21",
        within="LocalLog._flush_all",
        old="""
            with self.poison.on_failure(spares=TooManyOpenFilesError):
                self._store_changes()
                self._segments.sync_from(self.recovery_point)
                self._recovery_point_keeper.write(target, durably=False)
        """,
        new="""
            self._store_changes()
            self._segments.sync_from(self.recovery_point)
            self._recovery_point_keeper.write(target, durably=False)
        """,
    ),
    safety_bug(
        id="durable by append",
        cause="records counted as durable when they were written, not when they were synced",
        breaks="P6",
        within="LocalLog._append_to_active",
        old="self.log_end_offset = segment.end_offset",
        new="""
            self.log_end_offset = segment.end_offset
            self.recovery_point = segment.end_offset
        """,
    ),
    safety_bug(
        id="quorum-state renamed without a sync",
        cause="the file that holds the vote could be lost or empty after a power cut",
        breaks="P2",
        within="write_anew",
        old="if durably: handle.sync()",
    ),
    safety_bug(
        id="hashicorp/raft#697 on disk",
        cause="installing a snapshot kept the old records in the log's files",
        breaks="P4",
        within="LocalLog.truncate_fully_and_start_at",
        old="self._segments.replace_all(offset, now_ms=now_ms)",
    ),
    safety_bug(
        id="epochs kept when truncating",
        cause="leader-epoch-checkpoint kept epochs whose records were cut off",
        breaks="P4",
        within="LocalLog.truncate_to",
        old="self._epochs.truncate_from_end(self.log_end_offset)",
    ),
    liveness_bug(
        id="KAFKA-15078",
        cause="a node replayed a long log although there was a newer snapshot",
        breaks="L3",
        within="MetadataLog.truncate_to_latest_snapshot",
        old="latest <= end",
        new="latest.offset >= 0",
    ),
    safety_bug(
        id="KAFKA-13078",
        cause="a snapshot was finished without its last batch",
        breaks="P9",
        within="_write_parts",
        old="""
            writer.append(
                build_control_batch(footer, base_offset=offset, epoch=epoch, timestamp_ms=now_ms)
            )
        """,
        new="del footer",
    ),
    safety_bug(
        id="half a snapshot installed",
        cause="a fetched snapshot was installed without being looked at",
        breaks="P22",
        within="check_and_freeze",
        old="check_snapshot(writer)",
    ),
    safety_bug(
        id="apache/kafka#11386",
        cause="loading a snapshot took the offset of the wrong end",
        breaks="P9",
        within="MetadataLoader.load_in_pieces",
        old="snapshot.end_offset - 1",
        new="snapshot.end_offset",
    ),
    safety_bug(
        id="voters of an older snapshot",
        cause="a restarted node took its voters from a snapshot and forgot the log behind it",
        breaks="P12",
        within="_voter_history",
        old="for offset, voters in found.voters: history.add_voters(offset, voters)",
    ),
    safety_bug(
        id="snapshot without voters",
        cause="a snapshot did not hold the voters, so who loaded it had none",
        breaks="P12",
        within="_write_parts",
        old="""
            [
                ControlRecord(ControlRecordType.SNAPSHOT_HEADER, header),
                *quorum_control_records(controls.kraft_version, controls.voters),
            ]
        """,
        new="[ControlRecord(ControlRecordType.SNAPSHOT_HEADER, header)]",
    ),
    safety_bug(
        id="KAFKA-14644",
        cause="a replica whose disk failed went on",
        breaks="P21",
        within="Driver._flushed",
        old="if error is not None: self.fail(error)",
    ),
    safety_bug(
        id="KAFKA-14275",
        cause="a node that could not apply what was committed went on",
        breaks="P21",
        within="Driver._pump",
        old="except Exception as error: self.fail(error)",
        new="except Exception: pass",
    ),
    safety_bug(
        id="write awaited by nobody",
        cause="answers did not wait for the election record to be stored",
        breaks="P2",
        within="Driver._write_election",
        old="self._is_blocked = True",
    ),
    safety_bug(
        id="remembered batch of a truncated log",
        cause="a batch that was cut off was handed to the state machine as if it was committed",
        breaks="P17",
        within="Driver._truncate",
        old="self.applier.forget_from(end_offset)",
    ),
    liveness_bug(
        id="KAFKA-14300",
        cause="only a node that does not lead took snapshots",
        breaks="L3",
        within="SnapshotGenerator._consider",
        old="is_full or is_old",
        new="is_full and is_old",
    ),
    safety_bug(
        id="KAFKA-17426",
        cause="two directories with the same id were taken into use",
        breaks="P15",
        within="MetaPropertiesEnsemble.verify",
        old="_check_directory_id(entry.directory_id, directory, owners)",
    ),
    safety_bug(
        id="a rotten offset passes for the next",
        cause="a batch whose offset had rotted was read as the one behind it",
        breaks="P22",
        within="find_batch",
        old="not is_next",
        new="header.base_offset < 0",
    ),
)
