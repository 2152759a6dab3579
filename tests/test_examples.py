"""The files of examples/: sizes, planted noise, truth and rubric.

Every figure is computed here from first principles, so that these tests stand apart from the audit.
"""

import csv
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from relabel.rubric import Rubric

EXAMPLES = Path(__file__).parents[1] / "examples"
KEY = ["passage", "entity", "driver"]


def read(name: str) -> pd.DataFrame:
    return pd.read_csv(EXAMPLES / name, dtype=str, keep_default_na=False)


@pytest.fixture(scope="module")
def labels() -> pd.DataFrame:
    """The labelled file, with the number of its item, how often that item was labelled, and the truth."""
    data = read("risk_driver.csv")
    data["item"] = data.groupby(KEY, sort=False).ngroup()
    data["times"] = data.groupby("item")["id"].transform("size")
    return data.merge(read("risk_driver_truth.csv"), on=KEY, how="left", validate="many_to_one")


def disagreements(items: pd.Series, labels: pd.Series) -> pd.Series:
    """1 - sum n_k (n_k - 1) / (n (n - 1)) of every item with n >= 2 labels."""
    counts = pd.crosstab(items, labels)
    n = counts.sum(axis=1)
    counts, n = counts[n > 1], n[n > 1]
    return 1 - (counts * (counts - 1)).sum(axis=1) / (n * (n - 1))


def flip_rate(d: float, classes: int) -> float:
    return (classes - 1) / classes * (1 - (1 - classes * d / (classes - 1)) ** 0.5)


# --- the anaesthetists -------------------------------------------------------------------------------------


def test_anaesthetists_have_the_published_disagreement() -> None:
    table = read("anaesthetists.csv")
    assert list(table) == ["patient", "observer", "time", "grade"]
    assert len(table) == 315 == 45 * (3 + 1 + 1 + 1 + 1)
    assert not table.duplicated(["patient", "observer", "time"]).any()
    assert set(table["grade"]) == {"1", "2", "3", "4"}

    everyone = disagreements(table["patient"], table["grade"]).mean()
    assert everyone == pytest.approx(0.2720, abs=5e-5)
    assert flip_rate(everyone, 4) == pytest.approx(0.1512, abs=5e-5)

    first = table[table["observer"] == "1"]
    assert first.groupby("patient")["time"].agg(list).map(sorted).map(tuple).unique().tolist() == [
        ("1", "2", "3")
    ]
    retest = disagreements(first["patient"], first["grade"]).mean()
    assert retest == pytest.approx(0.1926, abs=5e-5)
    assert flip_rate(retest, 4) == pytest.approx(0.1034, abs=5e-5)


@pytest.mark.shared_data
def test_anaesthetists_are_the_printed_table(shared: Path) -> None:
    with (shared / "data/anaesthetists/table.csv").open(newline="", encoding="utf-8") as file:
        printed = {
            (row["patient"], *_observer(column), row[column])
            for row in csv.DictReader(file)
            for column in row
            if column != "patient"
        }
    table = read("anaesthetists.csv")
    assert set(table.itertuples(index=False, name=None)) == printed


def _observer(column: str) -> tuple[str, str]:
    match = re.fullmatch(r"observer(\d)(?:_time(\d))?", column)
    assert match
    return match[1], match[2] or "1"


# --- the risk-driver file ----------------------------------------------------------------------------------


def test_sizes_and_columns(labels: pd.DataFrame) -> None:
    data = read("risk_driver.csv")
    assert list(data) == ["id", *KEY, "split", "annotator", "created_at", "label"]
    assert len(data) == 6580
    assert data["id"].is_unique
    assert len(data.drop_duplicates(KEY)) == 6221
    assert set(data["label"]) == {"0", "1"}
    assert not (data == "").any().any()
    assert 0.27 <= (data["label"] == "1").mean() <= 0.31
    assert labels.drop_duplicates("item")["times"].value_counts().to_dict() == {1: 5876, 2: 331, 3: 14}
    for name in ("risk_driver.csv", "risk_driver_truth.csv"):
        assert (EXAMPLES / name).stat().st_size < 5_000_000


def test_items_stay_distinct_when_normalised() -> None:
    """Case, space and punctuation make no two questions the same, so that every rung counts 6,221 items."""
    data = read("risk_driver.csv").drop_duplicates(KEY)
    folded = data[KEY].apply(lambda column: column.str.casefold().str.replace(r"\W+", "", regex=True))
    assert not folded.duplicated().any()


def test_realised_disagreement(labels: pd.DataFrame) -> None:
    d = disagreements(labels["item"], labels["label"])
    assert len(d) == 345
    assert 0.17 <= d.mean() <= 0.19
    # The same in every split, as it was planted: pairs only, so that the counts are binomial.
    pairs = labels[labels["times"] == 2].drop_duplicates("item")
    conflicts = d.reindex(pairs["item"]).to_numpy() > 0
    table = pd.crosstab(pairs["split"].to_numpy(), conflicts)
    assert table.shape == (3, 2)
    assert stats.chi2_contingency(table).pvalue > 0.05


def test_splits_share_no_text(labels: pd.DataFrame) -> None:
    shares = labels.drop_duplicates("item")["split"].value_counts(normalize=True)
    assert shares.to_dict() == pytest.approx({"train": 0.70, "validation": 0.15, "test": 0.15}, abs=0.002)
    assert labels.groupby("passage")["split"].nunique().max() == 1


def test_repeats_are_second_opinions(labels: pd.DataFrame) -> None:
    """Different annotators, far apart in the file and in time, never the same record twice."""
    repeated = labels.assign(row=labels.index, at=pd.to_datetime(labels["created_at"]))
    repeated = repeated[repeated["times"] > 1]
    for _, group in repeated.groupby("item"):
        assert group["annotator"].is_unique
        assert group["row"].diff().min() >= 500
        assert group["at"].diff().min() >= pd.Timedelta(days=3)
    assert labels["created_at"].is_monotonic_increasing
    assert set(labels["annotator"]) == {f"a{number:02d}" for number in range(1, 13)}


def test_repeats_are_a_random_sample_of_items(labels: pd.DataFrame) -> None:
    repeated = labels["times"] > 1
    once = labels.drop_duplicates("item")
    twice = once["times"] > 1
    for column in ("split", "truth", "difficulty"):
        assert stats.chi2_contingency(pd.crosstab(once[column], twice)).pvalue > 0.5  # stratified on these
    for column in ("driver", "clause"):
        assert stats.chi2_contingency(pd.crosstab(once[column], twice)).pvalue > 0.05
    assert stats.chi2_contingency(pd.crosstab(labels["label"], repeated)).pvalue > 0.05
    length = once["passage"].str.len()
    assert stats.mannwhitneyu(length[twice], length[~twice]).pvalue > 0.05
    assert stats.ks_2samp(length[twice], length[~twice]).pvalue > 0.05


def test_truth_and_noise_are_as_planted(labels: pd.DataFrame) -> None:
    truth = read("risk_driver_truth.csv")
    assert list(truth) == [*KEY, "truth", "difficulty", "clause", "story"]
    assert len(truth) == 6221 == len(truth.drop_duplicates(KEY))
    assert set(map(tuple, truth[KEY].to_numpy())) == set(map(tuple, labels[KEY].to_numpy()))
    assert 0.20 <= (truth["truth"] == "1").mean() <= 0.26

    wrong = labels["label"] != labels["truth"]
    assert 0.10 <= wrong.mean() <= 0.12
    by_difficulty = wrong.groupby(labels["difficulty"]).mean()
    assert by_difficulty["easy"] == pytest.approx(0.04, abs=0.01)
    assert by_difficulty["hard"] == pytest.approx(0.195, abs=0.02)
    # Errors of unequal size: the flip rate that repeats show stays below the true share of errors.
    d = disagreements(labels["item"], labels["label"]).mean()
    assert flip_rate(d, 2) < wrong.mean()
    assert wrong.groupby(labels["annotator"]).mean().agg(np.ptp) > 0.05


def test_annotators_err_independently(labels: pd.DataFrame) -> None:
    """Within easy and within hard items, both labels of a pair are wrong about as often as chance has it."""
    pairs = labels[labels["times"] == 2].assign(wrong=lambda t: t["label"] != t["truth"])
    both = pairs.groupby("item").agg(wrong=("wrong", "sum"), difficulty=("difficulty", "first"))
    rate = pairs.groupby("difficulty")["wrong"].mean()
    for difficulty, group in both.groupby("difficulty"):
        expected = float(rate[difficulty]) ** 2
        assert stats.binomtest(int((group["wrong"] == 2).sum()), len(group), expected).pvalue > 0.02


def test_the_question_decides_not_the_passage_alone() -> None:
    truth = read("risk_driver_truth.csv")
    mixed = truth.groupby("passage")["truth"].nunique()
    assert (mixed > 1).sum() > 500
    assert (truth.groupby(["passage", "entity"])["truth"].nunique() > 1).sum() > 200
    assert (truth.groupby(["passage", "driver"])["truth"].nunique() > 1).sum() > 200
    inside = [entity in passage for entity, passage in zip(truth["entity"], truth["passage"], strict=True)]
    assert all(inside)


def test_authorities_are_never_at_risk() -> None:
    truth = read("risk_driver_truth.csv")
    office = truth["entity"].str.contains(r"\b(?:Office|Board|Commission|Council|Inspectorate|Tribunal)$")
    assert office.sum() > 100
    assert set(truth.loc[office, "truth"]) == {"0"}
    assert set(truth.loc[office, "clause"]) == {"C6"}


def test_passages_read_like_news() -> None:
    passages = read("risk_driver_truth.csv")["passage"].drop_duplicates()
    assert len(passages) > 4000
    for faulty in (
        r"[\[\]{}|]", r"\b(\w+) \1\b", r"\ban [b-df-hj-np-tv-z]", r"\ba (?!uni)[aeiou]",
        r" [.,;:]", r"  ", r'[.!?]"? [a-z]', r"s's",
    ):  # fmt: skip
        found = [passage for passage in passages if re.search(faulty, passage)]
        assert not found, f"{faulty}: {found[:3]}"
    sentences = passages.str.count(r'[.!?]"?(?: |$)')
    assert sentences.between(2, 5).all()
    assert (sentences <= 4).mean() > 0.98
    assert passages.str.split().str.len().between(12, 110).all()


def test_passages_are_no_copies_of_a_few_templates() -> None:
    """The nearest neighbour of a passage by three-word runs shares few of them."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.neighbors import NearestNeighbors

    passages = read("risk_driver_truth.csv")["passage"].drop_duplicates().sample(1500, random_state=0)
    vectors = TfidfVectorizer(ngram_range=(1, 3)).fit_transform(passages)
    distance, _ = NearestNeighbors(n_neighbors=2, metric="cosine").fit(vectors).kneighbors(vectors)
    similarity = 1 - distance[:, 1]
    assert np.median(similarity) < 0.4
    assert np.quantile(similarity, 0.99) < 0.75
    assert similarity.max() < 0.95


def test_a_bag_of_words_beats_chance_and_falls_short_of_the_truth(labels: pd.DataFrame) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    train, test = labels[labels["split"] == "train"], labels[labels["split"] == "test"]
    text = {name: part["passage"] + " " + part["entity"] + " " + part["driver"] for name, part in
            (("train", train), ("test", test))}  # fmt: skip
    words = TfidfVectorizer(sublinear_tf=True, min_df=2)
    model = LogisticRegression(max_iter=2000, C=10)
    model.fit(words.fit_transform(text["train"]), train["label"])
    scores = model.predict_proba(words.transform(text["test"]))[:, 1]
    truth = test["truth"].astype(int)
    assert 0.65 < balanced_accuracy_score(truth, scores > 0.5) < 0.85
    assert 0.75 < roc_auc_score(truth, scores) < 0.93


def test_the_readme_tells_the_figures_of_the_file(labels: pd.DataFrame) -> None:
    readme = " ".join((EXAMPLES / "README.md").read_text(encoding="utf-8").split())
    d = disagreements(labels["item"], labels["label"]).mean()
    by_passage = disagreements(labels["passage"], labels["label"]).mean()
    splits = labels["split"].value_counts()
    wrong = labels["label"] != labels["truth"]
    by_difficulty = wrong.groupby(labels["difficulty"]).mean() * 100
    truth = labels.drop_duplicates("item")["truth"]
    for figures in (
        f"6,580 labels of 6,221 items in {labels['passage'].nunique():,} passages",
        f"| d, ε | {d:.4f}, {flip_rate(d, 2):.4f} |".replace(" 0.", " ."),
        f"(d would come out at {by_passage:.3f})".replace(" 0.", " ."),
        f"train {splits['train']:,} rows, validation {splits['validation']}, test {splits['test']};",
        f"{(labels['label'] == '1').mean():.1%} ({(truth == '1').mean():.1%} of the items".replace("%", " %"),
        f"In all, {wrong.mean() * 100:.1f} % of the labels are wrong,",
        f"{by_difficulty['easy']:.1f} % of the easy and {by_difficulty['hard']:.1f} % of the hard",
    ):
        assert figures in readme


# --- the rubric --------------------------------------------------------------------------------------------


def test_rubric_fits_the_file() -> None:
    rubric = Rubric.load(EXAMPLES / "risk_driver_rubric.md")
    assert rubric.check() == ()
    data, truth = read("risk_driver.csv"), read("risk_driver_truth.csv")
    assert set(rubric.label_names) == set(data["label"]) == set(truth["truth"])
    assert rubric.default_label == "0"
    assert list(rubric.inputs(list(data))) == KEY
    assert [clause.id for clause in rubric.clauses] == [f"C{number}" for number in range(1, 9)]
    assert set(truth["clause"]) == {clause.id for clause in rubric.clauses}
    assert rubric.canonical("Actual risk") == "1"
    assert rubric.canonical("no") == "0"
