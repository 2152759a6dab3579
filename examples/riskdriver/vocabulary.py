"""The vocabulary of the stories, read from the TOML files beside this module."""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Sector:
    """Words that go with one line of business; ``defects`` is empty where there is no product to recall."""

    noun: str
    names: tuple[str, ...]
    product: str
    site: str
    customers: str
    part: str
    defects: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Driver:
    """One risk driver; ``group`` marks drivers too close to offer one as the wrong cause of another."""

    name: str
    group: str
    own: bool
    sectors: tuple[str, ...]
    causes: tuple[str, ...]
    outcomes: tuple[str, ...]
    topic: str
    offices: tuple[str, ...] = ()
    finders: str = "[inspectors|investigators]"
    plaintiffs: str = "[{n} {customers}|a group of {customers}]"
    harm: str = ""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What can happen to a firm, in the forms that a sentence needs."""

    past: tuple[str, ...]
    clause: tuple[str, ...]
    bare: str
    noun: str
    ended: str
    due: str


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One question about a passage and its answer.

    ``who`` is A (the firm in focus), B (the second firm), R (the authority) or U (a unit of A). ``what`` is
    the driver: ``own`` the one at work, ``X`` a second one that the text mentions, ``other`` one that it does
    not, or a driver by name. ``clause`` is the clause of the rubric that decides; ``hard`` marks what a
    careful reader has to think about twice. ``chance`` is how often the question is put; it is put only where
    the text names ``who``.
    """

    who: str
    what: str
    truth: int
    clause: str
    hard: bool = False
    chance: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Texts that tell the same kind of story, and the questions that can be asked about them.

    ``drivers`` is any, own, outside, harm (own conduct that can hurt others) or one driver's name;
    ``outcomes`` narrows what happens; ``second`` says who B is: same (a rival), bank or industry; ``office``
    makes A an authority.
    """

    name: str
    weight: float
    texts: tuple[str, ...]
    asks: tuple[Ask, ...]
    drivers: str = "any"
    outcomes: tuple[str, ...] = ()
    second: str = ""
    office: bool = False

    def admits(self, driver: Driver) -> bool:
        """Whether this story can be told of the driver."""
        kinds = {"any": True, "own": driver.own, "outside": not driver.own, "harm": bool(driver.harm)}
        return kinds.get(self.drivers, self.drivers == driver.name) and bool(self.outcomes_of(driver))

    def outcomes_of(self, driver: Driver) -> list[str]:
        """The driver's outcomes that the story can be told with; one listed twice is twice as likely."""
        return [name for name in driver.outcomes if not self.outcomes or name in self.outcomes]


def _load(name: str) -> dict[str, Any]:
    with (Path(__file__).with_name(name)).open("rb") as file:
        return tomllib.load(file)


def _build(kind: type[T], row: dict[str, Any]) -> T:
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    if unknown := set(row) - known:
        raise ValueError(f"{kind.__name__} has no field {sorted(unknown)}; use one of {sorted(known)}")
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})


def _scenarios(name: str) -> tuple[Scenario, ...]:
    rows = _load(name)["scenario"]
    return tuple(_build(Scenario, row | {"asks": [_build(Ask, ask) for ask in row["asks"]]}) for row in rows)


_ALL_SECTORS = {key: _build(Sector, row) for key, row in _load("sectors.toml").items()}
OFFICE = _ALL_SECTORS["office"]
SECTORS = {key: sector for key, sector in _ALL_SECTORS.items() if key != "office"}
DRIVERS = {row["name"]: _build(Driver, row) for row in _load("drivers.toml")["driver"]}
OUTCOMES = {key: _build(Outcome, row) for key, row in _load("outcomes.toml").items()}
SCENARIOS = _scenarios("hits.toml") + _scenarios("misses.toml")
FILLERS: dict[str, tuple[str, ...]] = {key: tuple(values) for key, values in _load("fillers.toml").items()}
NAMES: dict[str, tuple[str, ...]] = {key: tuple(values) for key, values in _load("names.toml").items()}
