"""What a library says is told without what opens a door."""

from __future__ import annotations

import pytest

from preflight.payload.objects.faults import words
from preflight.payload.objects.limit import NoAnswerError
from preflight.payload.objects.masked import masked


@pytest.mark.parametrize(
    ("said", "told"),
    [("at https://me:pw1234@store/b: no", "at https://***@store/b: no"),
     ("GET https://b.s3.amazonaws.com/k?X-Amz-Signature=abc&X-Amz-Date=1 failed",
      "GET https://b.s3.amazonaws.com/k?*** failed"),
     ("key AKIAABCDEFGHIJKLMNOP is unknown", "key *** is unknown"),
     ("no?query=here, and\n two lines", "no?query=here, and two lines"),
     ("SharedAccessSignature=sv1&sig=abc%2Fdef; x", "SharedAccessSignature=***&sig=*** x"),
     ("my value/of+the=secret", "my ***")],
)  # fmt: skip
def test_secrets(said: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "value/of+the=secret")
    assert masked(said) == told


@pytest.mark.parametrize(
    ("error", "begins"),
    [(PermissionError("Access Denied"), "access denied: PermissionError"),
     (FileNotFoundError("The specified bucket does not exist"), "no such bucket: "),
     (OSError(16, "Please reduce your request rate."), "throttled: "),
     (ConnectionRefusedError(111, "Connection refused"), "no connection: "),
     (NoAnswerError("no answer within 3 s"), "no answer: "), (TimeoutError(), "no answer: "),
     (ValueError("what"), "failed: ValueError: what")],
)  # fmt: skip
def test_words_begin_alike(error: Exception, begins: str) -> None:
    assert words(error).startswith(begins)
