"""Frames that are pictures: drawn with their caption, whatever stands in it."""

from __future__ import annotations

import io

from PIL import Image

from rlgpt.console.view.picture import draw


def jpeg(comment: bytes = b"") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (64, 40), (10, 200, 30)).save(out, "JPEG", comment=comment)
    return out.getvalue()


def shown(body: bytes, width: int = 40, height: int = 20) -> list[str]:
    return ["".join(span.text for span in line) for line in draw(body, width, height)]


def test_the_caption_stands_below_the_picture_inside_the_height() -> None:
    plain, told = shown(jpeg()), shown(jpeg(b"facing south\ninventory: 3 log"))
    assert set("".join(plain)) == {"▀"}
    assert told[-2:] == ["facing south", "inventory: 3 log"] and set("".join(told[:-2])) == {"▀"}
    assert len(shown(jpeg(b"a\nb\nc"), height=8)) <= 8


def test_a_long_or_hostile_caption_is_cut_and_cleaned() -> None:
    told = shown(jpeg(b"\x1b[2Jbad \xff\n" * 500))
    assert len(told) <= 20 and "\x1b" not in "".join(told)


def test_bytes_that_are_no_picture_draw_nothing() -> None:
    assert draw(b"\xff\xd8 no picture", 40, 20) == []


def test_a_picture_that_breaks_off_in_the_middle_draws_nothing() -> None:
    out = io.BytesIO()
    Image.effect_noise((64, 64), 100).save(out, "PNG")
    whole = out.getvalue()
    at = whole.index(b"IDAT")
    assert draw(whole[:at] + b"\0" + whole[at + 1 :], 40, 20) == []  # Pillow's word for it is SyntaxError
