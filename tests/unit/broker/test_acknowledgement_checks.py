"""The shape of acknowledgements in requests."""

import pytest

from kvorum.broker.share_partition.acknowledgement import AcknowledgeType, ShareAcknowledgementBatch
from kvorum.broker.share_partition.acknowledgement_checks import are_valid

ACCEPT, RELEASE, RENEW = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.RENEW


INVALID: list[list[tuple[int, int, list[int]]]] = [
    [(3, 2, [ACCEPT])],
    [(-2, 2, [ACCEPT])],
    [(0, 5, [ACCEPT]), (4, 6, [ACCEPT])],
    [(0, 5, [])],
    [(0, 5, [ACCEPT, RELEASE])],
    [(0, 0, [5])],
    [(0, 0, [-1])],
    [(0, 0, [RENEW])],
]


@pytest.mark.parametrize("batches", INVALID)
def test_acknowledgements_out_of_order_or_of_the_wrong_shape_are_invalid(
    batches: list[tuple[int, int, list[int]]],
) -> None:
    wanted = [ShareAcknowledgementBatch(*batch) for batch in batches]
    assert not are_valid(wanted, supports_renewal=True, renews=False)


def test_acknowledgements_are_one_for_all_offsets_or_one_for_each() -> None:
    batches = [
        ShareAcknowledgementBatch(0, 5, [ACCEPT]),
        ShareAcknowledgementBatch(5, 6, [ACCEPT, RELEASE]),
    ]
    assert are_valid(batches, supports_renewal=False, renews=False)
    renewal = [ShareAcknowledgementBatch(0, 0, [RENEW])]
    assert are_valid(renewal, supports_renewal=True, renews=True)
    assert not are_valid(renewal, supports_renewal=False, renews=True)
