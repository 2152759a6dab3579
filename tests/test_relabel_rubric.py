import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.errors import ColumnError, InputError
from relabel.rubric import Label, Rubric
from tests.conftest import ROOT
from tests.relabel_kit import RUBRIC_TEXT


def parse(front, prose="C1. Look."):
    return Rubric.parse(f"---\n{front}\n---\n{prose}\n", source="r.md")


GOOD = "name: n\nversion: '1'\ninputs: [text]\ndefault_label: a\nlabels: {a: one, b: two}"


def messages_of(rubric):
    return [problem.message for problem in rubric.check() if problem.fatal]


def test_a_rubric_is_read_whole():
    rubric = Rubric.parse(RUBRIC_TEXT)
    assert (rubric.name, rubric.version, rubric.default_label) == ("weather", "3", "sun")
    assert rubric.labels[0] == Label(name="rain", meaning="water falls", synonyms=("wet",))
    assert rubric.input_columns == ("text",)
    assert [clause.id for clause in rubric.clauses] == ["C1", "C2"]
    assert rubric.clauses[0].text == "C1. Falling water is rain."
    assert rubric.text.startswith("Judge the weather.")
    assert rubric.check() == ()


def test_what_yaml_would_change_stays_as_written():
    rubric = parse(
        "name: n\nversion: 1.10\ninputs: text\nlabels:\n- {name: 1}\n- {name: no, synonyms: [off, 0]}"
    )
    assert rubric.version == "1.10"
    assert rubric.label_names == ("1", "no")
    assert rubric.labels[1].synonyms == ("off", "0")
    assert rubric.input_columns == ("text",)


def test_labels_may_be_a_list_or_a_mapping():
    assert parse("labels: [a, b]").labels == (Label(name="a"), Label(name="b"))
    assert parse("labels: {a: one, b: two}").labels == (
        Label(name="a", meaning="one"),
        Label(name="b", meaning="two"),
    )


def test_the_hash_is_of_the_text_and_blind_to_line_ends_and_mark(tmp_path):
    plain, windows, mac = tmp_path / "a.md", tmp_path / "b.md", tmp_path / "c.md"
    plain.write_bytes(RUBRIC_TEXT.encode())
    windows.write_bytes(b"\xef\xbb\xbf" + RUBRIC_TEXT.replace("\n", "\r\n").encode())
    mac.write_bytes(RUBRIC_TEXT.replace("\n", "\r").encode())
    hashes = {Rubric.load(path).hash for path in (plain, windows, mac)}
    assert hashes == {Rubric.parse(RUBRIC_TEXT).hash}
    assert Rubric.parse(RUBRIC_TEXT + "\nmore").hash not in hashes


def test_labels_are_found_by_any_spelling():
    rubric = Rubric.parse(RUBRIC_TEXT)
    assert [rubric.canonical(text) for text in ("rain", " RAIN ", "Wet", "sun", "snow")] == [
        "rain",
        "rain",
        "rain",
        "sun",
        None,
    ]


@pytest.mark.parametrize(
    ("front", "part"),
    [
        ("name: n\nname: m\nlabels: [a, b]", "'name' is given twice"),
        ("labels: [a, b", "not valid YAML"),
        ("labels: a", "labels must list"),
        ("labels: [{meaning: x}]", "label 1 has no name"),
        ("labels: [{name: a, sense: x}]", "unknown key 'sense'"),
        ("labels: [{name: a, synonyms: {b: c}}]", "synonyms of label 'a'"),
        ("labels: [{name: a, meaning: [x]}]", "meaning of label 'a'"),
        ("labels: [a, b]\ninputs: {a: b}", "inputs must be a list"),
        ("labels: [a, b]\nversion: [1]", "version must be one value"),
        ("just words", "key: value"),
    ],
)
def test_a_front_matter_that_cannot_be_read_says_why(front, part):
    with pytest.raises(InputError, match=part) as caught:
        parse(front)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("r.md")


@pytest.mark.parametrize(
    ("text", "part"),
    [("labels: [a]\n", "no front matter"), ("---\nlabels: [a]\n", "not closed"), ("", "no front matter")],
)
def test_a_text_without_front_matter_says_so(text, part):
    with pytest.raises(InputError, match=part):
        Rubric.parse(text)


def test_a_file_that_cannot_be_read_says_so(tmp_path):
    with pytest.raises(InputError, match="check the path"):
        Rubric.load(tmp_path / "none.md")
    (tmp_path / "old.md").write_bytes("---\nname: caf\xe9\n---\n".encode("cp1252"))
    with pytest.raises(InputError, match="save the rubric as UTF-8"):
        Rubric.load(tmp_path / "old.md")


@pytest.mark.parametrize(
    ("front", "prose", "part"),
    [
        (GOOD.replace("{a: one, b: two}", "{a: one}"), "C1. x", "fewer than two labels"),
        (GOOD.replace("default_label: a", "default_label: c"), "C1. x", "default_label 'c' is not one of"),
        (GOOD.replace("inputs: [text]", "inputs: []"), "C1. x", "no input columns"),
        (GOOD.replace("[text]", "[text, text]"), "C1. x", "'text' is listed twice"),
        (GOOD.replace("version: '1'", "version: ''"), "C1. x", "no version"),
        (
            GOOD.replace("{a: one, b: two}", "[{name: a}, {name: b, synonyms: [A]}]"),
            "C1. x",
            "stands for both",
        ),
        (GOOD.replace("{a: one, b: two}", "[a, b, a]"), "C1. x", "label 'a' is listed twice"),
        (GOOD, "", "no prose"),
        (GOOD, "C1. x\n\nC1. y", "clause C1 is numbered twice"),
    ],
)
def test_problems_that_forbid_use(front, prose, part):
    assert any(part in message for message in messages_of(parse(front, prose)))


def test_advice_does_not_forbid_use():
    rubric = parse("version: '1'\ninputs: [text]\nlabels: [a, b]\ncolour: red", "Just judge.")
    advice = " ".join(problem.message for problem in rubric.check())
    assert messages_of(rubric) == []
    for part in ("no name", "no meaning", "no default_label", "no numbered clauses", "unknown key 'colour'"):
        assert part in advice


def test_missing_input_columns_are_named_with_a_hint():
    rubric = parse("labels: [a, b]\ninputs: [Text]")
    assert parse("labels: [a, b]\ninputs: [x, y]").inputs(["y", "z", "x"]) == ("x", "y")
    with pytest.raises(ColumnError, match="did the rubric mean 'text'"):
        rubric.inputs(["id", "text"])
    with pytest.raises(ColumnError, match="the columns are id, body"):
        rubric.inputs(["id", "body"])
    with pytest.raises(ColumnError, match="names no input columns"):
        parse("labels: [a, b]").inputs(["text"])


@pytest.mark.parametrize(
    "prose",
    [
        "C1. one\nC2. two",
        "Intro.\n\n- **C1.** one\n  goes on\n- **C2.** two\n\nOutro.",
        "### C1: one\n\nbody that is no clause\n\n### C2: two",
        "C1) one\n\n\nC2) two\n# Heading\nend",
        "[C1]. one\n> C2. two",
    ],
)
def test_clauses_are_found_in_the_ways_people_write_them(prose):
    rubric = parse("labels: [a, b]", prose)
    assert [clause.id for clause in rubric.clauses] == ["C1", "C2"]
    assert "".join(segment.text for segment in rubric.segments) == rubric.text


@given(st.text(alphabet="C12. \n#-*xy", max_size=60))
def test_segments_always_join_to_the_prose(prose):
    rubric = parse("labels: [a, b]", prose)
    assert "".join(segment.text for segment in rubric.segments) == rubric.text


def test_the_rubric_of_the_examples_has_no_problem():
    rubric = Rubric.load(ROOT / "examples" / "risk_driver_rubric.md")
    assert rubric.check() == ()
    assert rubric.label_names == ("1", "0")
    assert [clause.id for clause in rubric.clauses] == [f"C{n}" for n in range(1, 9)]
