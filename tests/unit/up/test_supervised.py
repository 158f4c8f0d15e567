"""The backoff of restarts."""

from streams.up.supervised import RestartBackoff


def test_backoff_doubles_after_the_first_short_life_up_to_5_s() -> None:
    pace = RestartBackoff()
    assert [pace.pause_after(1.0) for _ in range(8)] == [0.0, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert pace.short_in_a_row == 8


def test_long_life_resets_the_backoff() -> None:
    pace = RestartBackoff()
    for _ in range(4):
        pace.pause_after(0.1)
    assert pace.pause_after(3600.0) == 0.0
    assert pace.short_in_a_row == 0
    assert [pace.pause_after(1.0) for _ in range(2)] == [0.0, 0.2]
