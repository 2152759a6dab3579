"""Writes passages: picks a scenario, a cast and a driver, fills the grammar, and notes what is true."""

from collections.abc import Callable
from dataclasses import dataclass

from .text import Picker, expand, polish
from .vocabulary import DRIVERS, FILLERS, NAMES, OUTCOMES, SCENARIOS, SECTORS, Ask, Driver, Outcome, Scenario
from .world import Company, authority, brand, coming, companies, count, moment, money, town

# What befalls an authority: the driver and the outcome.
OFFICE_CASES = (
    ("cyber security", "breach"),
    ("cyber security", "lawsuit"),
    ("data privacy", "lawsuit"),
    ("labour practices", "lawsuit"),
    ("natural disaster", "stoppage"),
    ("power outage", "stoppage"),
)
COURTS = ("a court", "the court", "the district court", "the high court")
CAST_SIZE = 400


@dataclass(frozen=True, kw_only=True)
class Item:
    """One question about one passage, with its truth and the clause of the rubric that decides it."""

    passage: str
    entity: str
    driver: str
    truth: int
    clause: str
    hard: bool
    story: str


@dataclass(frozen=True, kw_only=True)
class Case:
    """Who and what a passage is about; ``beside`` is a driver that it may mention but that is not at work."""

    scenario: Scenario
    driver: Driver
    outcome: Outcome
    firm: Company
    second: Company | None
    beside: Driver


class Slots(dict[str, str]):
    """The fixed words of a story; amounts, towns and dates are drawn anew at every mention."""

    def __init__(self, fixed: dict[str, str], picker: Picker) -> None:
        super().__init__(fixed)
        self._picker = picker
        self._fresh: dict[str, Callable[[], str]] = {
            "n": lambda: count(picker),
            "k": lambda: str(picker.integer(2, 9)),
            "day": lambda: str(picker.integer(1, 28)),
            "m": lambda: money(picker),
            "m2": lambda: money(picker),
            "month": lambda: picker.one(NAMES["months"]),
            "when3": lambda: moment(picker),
            "soon": lambda: coming(picker),
            "place2": lambda: town(picker),
            "court": lambda: f"{picker.one(COURTS)} in {town(picker)}",
            "src": lambda: expand(picker.one(FILLERS["sources"]), {}, picker),
        }

    def __missing__(self, key: str) -> str:
        return self._fresh[key]()

    def settle(self, key: str, template: str) -> None:
        """Expand a template once, so that every later mention reads the same."""
        self[key] = expand(template, self, self._picker)


def write_items(*, items: int, seed: int) -> list[list[Item]]:
    """Passages with their one to three questions each, ``items`` questions in all; every passage differs."""
    picker = Picker(f"stories {seed}")
    cast = companies(picker, size=CAST_SIZE)
    weights = [scenario.weight for scenario in SCENARIOS]
    written: list[list[Item]] = []
    seen: set[str] = set()
    left = items
    while left:
        case = _cast(picker.weighted(SCENARIOS, weights), cast, picker)
        passage, who = _tell(case, picker)
        asked = _questions(case, passage, who, picker)[:left]
        if passage in seen or not asked:
            continue
        seen.add(passage)
        written.append(asked)
        left -= len(asked)
    return written


def _cast(scenario: Scenario, cast: dict[str, list[Company]], picker: Picker) -> Case:
    if scenario.office:
        name, outcome = picker.one(OFFICE_CASES)
        driver = DRIVERS[name]
        firm = authority(picker, picker.one([other.offices for other in DRIVERS.values() if other.offices]))
    else:
        driver = picker.one([driver for driver in DRIVERS.values() if scenario.admits(driver)])
        outcome = picker.one(scenario.outcomes_of(driver))
        firm = picker.one(cast[picker.one(driver.sectors)])
    second = None
    if scenario.second:
        same = next((key for key, group in cast.items() if firm in group), "")
        industry = picker.one(DRIVERS["supplier failure"].sectors)
        key = {"same": same, "bank": "bank", "industry": industry}[scenario.second]
        second = picker.one([other for other in cast[key] if other is not firm])
    return Case(
        scenario=scenario,
        driver=driver,
        outcome=OUTCOMES[outcome],
        firm=firm,
        second=second,
        beside=_unlike(driver, firm, picker),
    )


def _unlike(driver: Driver, firm: Company, picker: Picker, *avoid: Driver) -> Driver:
    """A driver that fits the firm and that no careful reader could take for this one."""
    groups = {driver.group, *(other.group for other in avoid)}
    return picker.one(
        [
            other
            for other in DRIVERS.values()
            if other.group not in groups
            and (firm.authority or any(SECTORS[key] is firm.sector for key in other.sectors))
        ]
    )


def _firm_slots(firm: Company, picker: Picker, prefix: str = "") -> dict[str, str]:
    sector = firm.sector
    raw = {
        "kind": sector.noun,
        "product": sector.product,
        "site": sector.site,
        "customers": sector.customers,
        "part": sector.part,
    }
    slots = {prefix + key: expand(value, {}, picker) for key, value in raw.items()}
    return slots | {prefix + "place": town(picker), prefix or "A": firm.name}


def _tell(case: Case, picker: Picker) -> tuple[str, dict[str, str]]:
    """The passage, and the names of A, B, R and U in it."""
    scenario, driver, outcome, firm = case.scenario, case.driver, case.outcome, case.firm
    who = {"A": firm.name, "U": brand(picker)}
    fixed = _firm_slots(firm, picker)
    if driver.offices and not scenario.office:
        who["R"] = authority(picker, driver.offices).name
    if case.second is not None:
        who["B"] = case.second.name
        fixed |= _firm_slots(case.second, picker, "B")
    defect = picker.one(firm.sector.defects) if firm.sector.defects else ""
    slots = Slots({**fixed, **who, "driver": driver.name, "defect": defect}, picker)
    slots["when"], slots["when2"] = moment(picker), moment(picker)
    if scenario.office:
        slots["src"] = "officials said"
    settled = {
        "finders": driver.finders,
        "plaintiffs": driver.plaintiffs,
        "cause": picker.one(driver.causes),
        "Xcause": picker.one(case.beside.causes),
        "topic": driver.topic,
        "Xtopic": case.beside.topic,
        "harm": driver.harm,
        "due": outcome.due,
        "bare": outcome.bare,
        "noun": outcome.noun,
        "ended": outcome.ended,
        "past": picker.one(outcome.past[:2] if scenario.office else outcome.past),
    }
    for key, template in settled.items():
        slots.settle(key, template)
    slots.settle("event", picker.one(("{A} {past}", "{A} {past}", picker.one(outcome.clause))))
    if case.second is not None:
        theirs = {key: fixed["B" + key] for key in ("product", "site", "place", "customers")}
        slots["Bpast"] = expand(picker.one(outcome.past), Slots({**slots, **theirs}, picker), picker)
    return _frame(expand(picker.one(scenario.texts), slots, picker), slots, scenario, picker), who


def _frame(core: str, slots: Slots, scenario: Scenario, picker: Picker) -> str:
    """Put neutral sentences before and after the story, two to four sentences in all."""
    told = len([part for part in core.split(". ") if part])
    room = max(picker.integer(2, 4) - told, 1 if told == 1 else 0)
    after = FILLERS["office_after"] if scenario.office else FILLERS["after"]
    if "R" in slots:
        after += FILLERS["regulator_after"]
    parts = [core]
    if room and not scenario.office and picker.chance(0.4):
        parts.insert(0, expand(picker.one(FILLERS["before"]), slots, picker))
        room -= 1
    parts += [expand(text, slots, picker) for text in picker.shuffled(after)[:room]]
    if picker.chance(0.15):
        parts.insert(0, expand("{place2}, {day} {month} -", slots, picker))
    return polish(" ".join(parts))


def _questions(case: Case, passage: str, who: dict[str, str], picker: Picker) -> list[Item]:
    def topic(ask: Ask) -> Driver:
        if ask.what == "own":
            return case.driver
        if ask.what == "X":
            return case.beside
        return DRIVERS.get(ask.what) or _unlike(case.driver, case.firm, picker, case.beside)

    return [
        Item(
            passage=passage,
            entity=who[ask.who],
            driver=topic(ask).name,
            truth=ask.truth,
            clause=ask.clause,
            hard=ask.hard,
            story=case.scenario.name,
        )
        for ask in case.scenario.asks
        if who.get(ask.who, "") in passage and ask.who in who and picker.chance(ask.chance)
    ]
