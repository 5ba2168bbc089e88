"""The receiver that people run by hand prints what arrives."""

import urllib.request

from scripts.receiver import line_of, receiving


def test_an_arrival_is_shown_in_a_line() -> None:
    with receiving() as listening:
        request = urllib.request.Request(  # noqa: S310 - our own address
            f"{listening.url}/ok",
            data=b"{}",
            headers={
                "Puntual-Tenant": "try",
                "Puntual-Schedule": "first",
                "Puntual-Scheduled-For": "2026-11-30T09:00:00.000Z",
                "Puntual-Attempt": "1",
            },
        )
        urllib.request.urlopen(request, timeout=5).close()  # noqa: S310 - our own address
        (arrival,) = listening.book.all()
    assert line_of(arrival).endswith(" try/first of 2026-11-30T09:00:00.000Z, attempt 1: 200")
