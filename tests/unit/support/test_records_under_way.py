"""Which records of a partition are being handled."""

from streams.flow.support.records_under_way import RecordsUnderWay


def test_records_of_before_the_last_look_must_be_finished() -> None:
    records = RecordsUnderWay()
    assert records.are_earlier_finished()
    first, second = records.begin(), records.begin()
    # Both have begun since: a look at them is the next one's.
    assert records.are_earlier_finished()
    third = records.begin()
    records.finish(second)
    assert not records.are_earlier_finished()
    records.finish(first)
    assert records.are_earlier_finished()
    assert not records.are_earlier_finished()
    records.finish(third)
    assert records.are_earlier_finished()


def test_abandoned_record_is_not_waited_for_and_may_end_late() -> None:
    records = RecordsUnderWay()
    abandoned = records.begin()
    assert records.are_earlier_finished()
    records.abandon()
    assert records.are_earlier_finished()
    later = records.begin()
    assert records.are_earlier_finished()
    records.finish(abandoned)
    assert not records.are_earlier_finished()
    records.finish(later)
    assert records.are_earlier_finished()
