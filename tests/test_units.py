"""Sizes, rates and durations are read and printed as people and vendors write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight.errors import UsageError
from preflight.units import (
    format_bytes,
    format_duration,
    format_rate,
    number,
    parse_bytes,
    parse_duration,
    parse_rate,
)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("4096", 4096),
        ("4k", 4096),
        ("8G", 8 * 2**30),
        ("64KiB", 65536),
        ("64kib", 65536),
        ("1.5 GB", 1_500_000_000),
        ("1.5GiB", 1_610_612_736),
        ("10gb", 10_000_000_000),
        (" 3 TB ", 3_000_000_000_000),
        ("512B", 512),
    ],
)
def test_sizes_keep_gib_and_gb_apart(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["", "GB", "-1", "1,5GB", "10 Gb", "1 G B", "nan", "1e9", "1 XB"])
def test_a_bad_size_says_what_to_write(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_bytes(text)
    assert repr(text) in caught.value.what
    assert "64KiB" in caught.value.hint


@pytest.mark.parametrize(
    ("count", "decimal", "text"),
    [
        (0, False, "0 B"),
        (1023, False, "1,023 B"),
        (1024, False, "1 KiB"),
        (85_520_809_984, False, "79.6 GiB"),
        (85_520_809_984, True, "85.5 GB"),
        (2**40, True, "1.1 TB"),
        (2**40, False, "1 TiB"),
    ],
)
def test_bytes_for_people(count: int, decimal: bool, text: str) -> None:
    assert format_bytes(count, decimal=decimal) == text


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [
        ("25 GB/s", 25e9),
        ("1GiB/s", 2.0**30),
        ("400 Gb/s", 50e9),
        ("400Gbps", 50e9),
        ("100 Gbit/s", 12.5e9),
        ("8 b/s", 1.0),
    ],
)
def test_rates_keep_bits_and_bytes_apart(text: str, bytes_per_s: float) -> None:
    assert parse_rate(text) == bytes_per_s


@pytest.mark.parametrize("text", ["25", "25 GB", "GB/s", "25 GB/h", "25 GBPS"])
def test_a_bad_rate_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a rate"):
        parse_rate(text)


def test_rates_for_people() -> None:
    assert format_rate(50e9) == "50 GB/s"
    assert format_rate(50e9, bits=True) == "400 Gb/s"
    assert format_rate(1_234_000) == "1.23 MB/s"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5m", 300),
        ("72h", 259_200),
        ("1h30m", 5400),
        ("90", 90),
        ("1.5h", 5400),
        ("250ms", 0.25),
        ("2 d 3 h", 183_600),
        ("5 min 3 s", 303),
        ("1w", 604_800),
        ("10 Minutes", 600),
    ],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "m", "5x", "5m5m", "-5m", "5m and", "1:30", "1e3s"])
def test_a_bad_duration_says_what_to_write(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_duration(text)
    assert "1h30m" in caught.value.hint


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.00025, "250 us"),
        (0.25, "250 ms"),
        (1.94, "1.94 s"),
        (59.99, "1 min"),
        (303, "5 min 3 s"),
        (3600, "1 h"),
        (5400, "1 h 30 min"),
        (86_399, "1 d"),
        (183_600 + 59, "2 d 3 h"),
        (-90, "-1 min 30 s"),
        (400 * 86_400, "400 d"),
    ],
)
def test_durations_for_people(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.floats(min_value=1e-6, max_value=1e9))
def test_a_printed_duration_reads_back_within_its_smaller_unit(seconds: float) -> None:
    assert parse_duration(format_duration(seconds).replace(",", "")) == pytest.approx(
        seconds, rel=0.05
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1234567, "1,234,567"),
        (16.0, "16"),
        (0.41234, "0.412"),
        (87.25, "87.2"),
        (9.996, "10"),
        (999.6, "1,000"),
        (1234.5, "1,234"),
        (-2.5, "-2.5"),
        (0.0000123, "1.23e-05"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
    ],
)
def test_numbers_have_three_significant_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_more_digits_on_demand() -> None:
    assert number(0.84987, digits=4) == "0.8499"
    assert number(12345.678, digits=7) == "12,345.68"


@given(st.floats(min_value=-1e300, max_value=1e300))
def test_a_printed_number_is_near_the_number(value: float) -> None:
    assert float(number(value).replace(",", "")) == pytest.approx(value, rel=0.006)
