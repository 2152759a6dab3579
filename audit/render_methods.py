"""What every report says about its methods, in one place for all formats."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["METHODS", "SHARED_MISTAKES", "Method"]


@dataclass(frozen=True, kw_only=True)
class Method:
    """One paragraph of the methods: its name, what is assumed, the formula and where it comes from."""

    name: str
    sentence: str
    formula: str = ""
    source: str = ""


#: What d cannot see; every report says it.
SHARED_MISTAKES = (
    "Shared mistakes are invisible to d: ε is error against the label process, not the truth. On 24 public sets "
    "with a gold standard ε was below the true error in all 24 (median ratio 0.78)."
)

#: Everything a report states, in the order of its parts.
METHODS: tuple[Method, ...] = (
    Method(
        name="Disagreement d",
        sentence=(
            "Each item i has its own distribution p_i over the K declared classes, and its labels are independent"
            " draws from it. d_i is the unbiased estimate of the chance that two of its labels differ; d is the "
            "mean of d_i over the repeated items, each counted once. The pair-weighted and row-weighted means "
            "stand beside it: one text copied a thousand times must not decide the headline."
        ),
        formula="d_i = 1 − Σ n_k (n_k − 1) / (n (n − 1)),  n = Σ n_k",
        source="Simpson, Nature 163 (1949) 688",
    ),
    Method(
        name="Flip rate ε",
        sentence=(
            "The chance that a label is not its item's most likely one, if that chance is the same for every item"
            " and errors spread evenly over the other K − 1 classes. If all errors of a class go to one rival "
            "class, the K = 2 form d = 2ε (1 − ε) holds for any K. Above d = (K − 1)/K there is no such ε."
        ),
        formula="ε_K = ((K − 1)/K) (1 − √(1 − K d/(K − 1))),  from d = 2ε − ε² K/(K − 1)",
    ),
    Method(
        name="Accuracy ceiling",
        sentence=(
            "The best accuracy any predictor can reach against these labels is the mean of max p_i. Without the "
            "assumption of equal ε it is only known to lie in a band. 1 − d is what a fresh draw of the labels "
            "scores, and a model may honestly beat it; 1 − ε is the top of the band. The widened band takes the "
            "unfavourable ends of both intervals."
        ),
        formula="1 − d ≤ ceiling ≤ 1 − ε_K(d);  widened: [1 − d_high, 1 − ε_K(d_low)]",
        source="Cover & Hart, IEEE Trans. Inf. Theory 13 (1967) 21–27; Jensen's inequality for the upper end",
    ),
    Method(
        name="Binary labels",
        sentence=(
            "Always answering the commoner class errs on m, the share of the rarer one, so the lower end is at "
            "least 1 − m."
        ),
        formula="error ≤ min(d, m, 1 − m)",
    ),
    Method(
        name="Chance-corrected agreement",
        sentence=(
            "Retest κ sets d against the disagreement of labels drawn at the same class shares; Krippendorff's α "
            "does so with the row-weighted d. No predictor's MCC exceeds √κ (binary labels)."
        ),
        formula="κ = 1 − d / (1 − Σ p_k²),  α = 1 − D_o / D_e",
        source="Scott, Public Opinion Quarterly 19 (1955) 321–325; Krippendorff, Content Analysis (2004), 11.3",
    ),
    Method(
        name="Several labels an item",
        sentence=(
            "Three or more labels show more moments of p_i than two. The band from them is the least and the greatest "
            "mean of max p_i over all distributions of p_i that give the observed counts; it assumes nothing of the "
            "items but independent labels."
        ),
        formula="min, max of E[max p] subject to E[chance of each count] = its frequency",
    ),
    Method(
        name="Other metrics",
        sentence=(
            "A hard bound holds for any predictor, from d and the share m of the positive class. The truth-knower is a "
            "predictor that knows the labels without their noise, if all items are equally noisy."
        ),
        formula="MCC ≤ √κ,  Brier ≥ d/2,  log-loss ≥ 2d ln 2",
    ),
    Method(
        name="Error rates",
        sentence=(
            "Where they were asked for: pairs leave a set of rates open; three labels an item, strata with other class "
            "shares, or known annotators identify them, if labels are independent given the truth and right more often "
            "than not."
        ),
        source=("Hui & Walter, Biometrics 36 (1980) 167–171; Dawid & Skene, Appl. Stat. 28 (1979) 20–28"),
    ),
    Method(
        name="Copied labels",
        sentence=(
            "If a share c of the pairs of labels were copies of one opinion, they agree by construction, and the "
            "d of the independent pairs is larger than the one observed."
        ),
        formula="d_observed = (1 − c) d",
    ),
    Method(
        name="Intervals",
        sentence=(
            "Where every repeated item has two labels, Wilson's score interval of d, its end points mapped "
            "through ε_K. Groups of mixed sizes: a bootstrap over items gives the variance of d, and the limits "
            "are Clopper and Pearson's at the sample size which that variance implies, with one more item of the "
            "largest or of no disagreement. No conflict at all: "
            "one-sided, d ≤ 1 − α^(1/n) with α = 1 − level. The JSON names the method of every number."
        ),
        source="Wilson, J. Am. Stat. Assoc. 22 (1927) 209–212; Korn & Graubard, Survey Methodology 24 (1998) 193–201",
    ),
)
