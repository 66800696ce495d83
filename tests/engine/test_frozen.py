"""octo/frozen.py: values that nobody changes."""

from dataclasses import replace

from octo.frozen import frozen


@frozen
class Point:
    x: int
    y: int = 0


def test_values_with_the_same_parts_are_equal():
    assert Point(1) == Point(1, 0)
    assert Point(1) != Point(1, 2)


def test_a_value_is_replaced_by_another_one():
    assert replace(Point(1), y=2) == Point(1, 2)


def test_a_value_has_its_parts_and_no_others():
    assert Point.__slots__ == ("x", "y")
    assert repr(Point(1)) == "Point(x=1, y=0)"
