"""Invented companies, places, authorities and amounts. Any likeness to a real firm or office is chance."""

from collections.abc import Sequence
from dataclasses import dataclass

from .text import Picker
from .vocabulary import NAMES, OFFICE, SECTORS, Sector


@dataclass(frozen=True, kw_only=True)
class Company:
    """An entity that a passage can speak of: a firm, or an authority where ``authority`` is set."""

    name: str
    sector: Sector
    authority: bool = False


def companies(picker: Picker, *, size: int) -> dict[str, list[Company]]:
    """A cast of ``size`` firms with different stems, by sector key; firms come back in several passages."""
    stems = picker.shuffled([a + b for a in NAMES["firm_start"] for b in NAMES["firm_end"]])[:size]
    cast: dict[str, list[Company]] = {key: [] for key in SECTORS}
    keys = list(SECTORS)
    for index, stem in enumerate(stems):
        key = keys[index % len(keys)]
        sector = SECTORS[key]
        cast[key].append(Company(name=f"{stem} {picker.one(sector.names)}", sector=sector))
    return cast


def town(picker: Picker) -> str:
    """The name of a town."""
    first, second = picker.one(NAMES["town_start"]), picker.one(NAMES["town_end"])
    return first + (second.capitalize() if first.endswith(" ") else second)


def brand(picker: Picker) -> str:
    """The name of a subsidiary or brand."""
    return picker.one(NAMES["brand_start"]) + picker.one(NAMES["brand_end"])


def authority(picker: Picker, offices: Sequence[str]) -> Company:
    """A regulator with a region in its name."""
    return Company(
        name=f"{picker.one(NAMES['regions'])} {picker.one(offices)}", sector=OFFICE, authority=True
    )


def count(picker: Picker) -> str:
    """A large number of things, plain or rounded."""
    power = picker.uniform(2.1, 5.6)
    whole = int(power)
    size = 10**whole * (1 + 9 * (power - whole))  # straight between powers of ten: exact everywhere
    if picker.chance(0.5):
        unit = 10 ** (len(str(int(size))) - 1)
        roughly = picker.one(("about", "some", "around", "nearly", "more than"))
        return f"{roughly} {round(size / unit) * unit:,}"
    return f"{int(size):,}"


def money(picker: Picker) -> str:
    """An amount of money."""
    sign = picker.one(("€", "$", "£"))
    if picker.chance(0.25):
        return f"{sign}{picker.integer(12, 99) * 10},000"
    amount = f"{picker.uniform(1.1, 90):.{picker.integer(0, 1)}f}".removesuffix(".0")
    return f"{sign}{amount} million"


def moment(picker: Picker) -> str:
    """When it happened, as a news text says it."""
    day, month = picker.one(NAMES["days"]), picker.one(NAMES["months"])
    return picker.one(
        (
            *(f"on {day}", f"late on {day}", f"on {day} morning", f"last {day}"),
            *(
                f"on {picker.integer(1, 28)} {month}",
                f"in early {month}",
                f"in {month}",
                f"at the end of {month}",
            ),
            *("last week", "this week", "earlier this month"),
        )
    )


def coming(picker: Picker) -> str:
    """When it will happen."""
    day, month = picker.one(NAMES["days"]), picker.one(NAMES["months"])
    return picker.one(
        (
            *(f"next {day}", f"in {month}", f"on {picker.integer(1, 28)} {month}"),
            *("next month", "in a fortnight", "before the summer break", "at the end of the quarter"),
        )
    )
