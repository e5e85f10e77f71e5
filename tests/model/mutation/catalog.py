"""All bugs that are put in."""

from tests.model.mutation import (
    bugs_controller,
    bugs_elections,
    bugs_groups,
    bugs_partition_logs,
    bugs_partition_replication,
    bugs_reassignment,
    bugs_replication,
    bugs_security,
    bugs_shares,
    bugs_storage,
    bugs_transactions,
    bugs_voters,
)
from tests.model.mutation.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *bugs_elections.MUTANTS,
    *bugs_replication.MUTANTS,
    *bugs_voters.MUTANTS,
    *bugs_storage.MUTANTS,
    *bugs_controller.MUTANTS,
    *bugs_groups.MUTANTS,
    *bugs_transactions.MUTANTS,
    *bugs_reassignment.MUTANTS,
    *bugs_partition_replication.MUTANTS,
    *bugs_partition_logs.MUTANTS,
    *bugs_security.MUTANTS,
    *bugs_shares.MUTANTS,
)
