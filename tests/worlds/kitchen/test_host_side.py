"""The host side of the kitchen needs nothing installed: places, commands, refusals."""

import math

import pytest

from rlgpt.training.worlds.kitchen import names
from rlgpt.training.worlds.kitchen.host_side import LIBRARY, decoder, describe, encode

go, move, beside, distance, offset = (LIBRARY[name] for name in ("go", "move", "beside", "distance", "offset"))


def packed(aim=(100, 200, 2000), hand=(100, 200, 2000), roll=0, handles=(0,) * 21, fingers=1, reached=0):
    return names.VIEW.pack(3, 147, *hand, *aim, roll, 80, fingers, False, reached, *(0,) * 7, *handles)


def view(**parts):
    return decoder().view(packed(**parts))


def test_go_moves_the_aim_in_a_straight_line_and_never_past_the_place():
    assert go(view(), (100, 300, 2000)) == (0, 40, 0, 0, 0)
    assert go(view(), (100, 210, 2000)) == (0, 10, 0, 0, 0)
    assert go(view(), (100, 200, 2000)) == (0, 0, 0, 0, 0)
    assert go(view(), (130, 240, 2000), speed=10) == (6, 8, 0, 0, 0)
    assert go(view(aim=(100, 240, 2000)), (100, 260, 2000)) == (0, 20, 0, 0, 0)


def test_go_turns_towards_a_roll_within_the_range_of_a_command():
    assert go(view(), (100, 200, 2000), roll=1571)[3] == names.ROLL_STEP
    assert go(view(roll=1500), (100, 200, 2000), roll=1571)[3] == 71
    assert go(view(roll=1500), (100, 200, 2000), roll=99_999)[3] == 100


def test_places_are_counted_from_what_is_said_about_a_handle():
    handles = [0] * 21
    handles[3:6] = (-250, 350, 1885)
    seen = view(handles=handles)
    assert beside(seen, "kettle", 0, -120, 10) == (-250, 230, 1895)
    assert offset(seen, "kettle") == (-350, 150, -115)
    assert distance(seen, (100, 200, 2010)) == 10


@pytest.mark.parametrize("value", [math.nan, math.inf, "12", None, True, [1]])
def test_a_part_of_a_command_must_be_a_finite_number(value):
    with pytest.raises(ValueError, match="finite number"):
        move(value)


@pytest.mark.parametrize("place", [None, (1, 2), [1, 2, 3], "abc", (1, 2, "3"), (1, 2, math.nan), (True, 1, 2)])
def test_a_place_must_be_three_finite_numbers(place):
    with pytest.raises((TypeError, ValueError), match=r"place|numbers"):
        go(view(), place)


def test_large_numbers_are_cut_to_a_legal_command():
    command = move(1e300, -1e300, 2**61, -(2**61), 99)
    assert command == (60, -60, 60, -200, 1)
    assert encode(command) == command


def test_an_unknown_object_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match="'oven' is no object; they are microwave"):
        view().handle("oven")
    with pytest.raises(ValueError, match="no object"):
        view().opened(["kettle"])


def test_bytes_of_another_size_are_no_view():
    for damaged in (b"", packed()[:-1], packed() + b"\0"):
        with pytest.raises(ValueError, match="wrong size"):
            decoder().view(damaged)


def test_milestones_are_read_from_their_bits():
    seen = view(reached=0b1011 << 4)
    assert seen.reached == {"kettle_reached", "kettle_grasped", "kettle"}
    assert describe(seen)["reached"] == ["kettle", "kettle_grasped", "kettle_reached"]


def test_roots_and_angles_are_numbers_in_radians():
    sqrt, sin, cos, atan2 = (LIBRARY[name] for name in ("sqrt", "sin", "cos", "atan2"))
    assert sqrt(16) == 4.0 and sin(0) == 0.0 and cos(0) == 1.0
    assert atan2(1, 0) == pytest.approx(1.570796327) and sin(atan2(1, 1)) == pytest.approx(sqrt(0.5))


@pytest.mark.parametrize("value", ["4", None, float("nan"), float("inf"), True, (1, 2), 1e400])
def test_roots_and_angles_take_finite_numbers_only(value):
    for name in ("sqrt", "sin", "cos"):
        with pytest.raises(ValueError, match="finite number"):
            LIBRARY[name](value)
    with pytest.raises(ValueError, match="from 0 on"):
        LIBRARY["sqrt"](-1)
