"""What each method is, in words: the one source of the method pages of the documentation and of the report's notes.

A method answers one question. Its text says how, by which formula, what is guaranteed, what it costs, when not to use
it, and where it comes from. Formulas are Unicode text, one to a line; nothing here is markup.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Method:
    """One method in words.

    Attributes
    ----------
    key, title
        Its name in lower case with hyphens, and its name for people.
    question, idea
        The question it answers, in one sentence, and how, in a few.
    formula
        What is computed, in Unicode, one formula to a line.
    guarantee
        What is promised: exact or within what; or ε, δ, the neighbouring relation and the audience.
    cost
        How it grows, and what was measured.
    not_for
        When to use something else, and what.
    reference
        Where it comes from.
    functions
        Public names, as in ``datassay.NAME``.
    """

    key: str
    title: str
    question: str
    idea: str
    formula: str
    guarantee: str
    cost: str
    not_for: str
    reference: str
    functions: tuple[str, ...]


_JIA = "Jia et al., Efficient Task-Specific Data Valuation for Nearest Neighbor Algorithms, VLDB 2019."
_SOFT = 'Wang & Jia, A Note on "Efficient Task-Specific Data Valuation for Nearest Neighbor Algorithms", 2023.'
_TKNN = (
    "Wang, Zhu, Wang, Jia & Mittal, Threshold KNN-Shapley: A Linear-Time and Privacy-Friendly Approach to Data "
    "Valuation, 2023"
)
_BANZHAF = "Wang & Jia, Data Banzhaf: A Robust Data Valuation Framework for Machine Learning, AISTATS 2023."
_WAKA = (
    "Mesana, Bénesse, Lautraite, Caporossi & Gambs, WaKA: Data Attribution using K-Nearest Neighbors and Membership "
    "Privacy Principles, 2024"
)
_THESIS = "Mesana, Investigating the Privacy/Utility Tradeoff through the Lens of Data Valuation, thesis, 2025"
_LIRA = "Carlini et al., Membership Inference Attacks From First Principles, 2022"
_LAYERED = "Watson, Andreeva, Yang & Sarkar, Differentially Private Shapley Values for Data Evaluation, 2022"
_UNIQUE = "Seiler, Mase & Owen, What makes you unique?"

_RANKS = (
    "Ranks 1 … N by distance to a validation point, ties by index; b = 1 where a record's label is that point's, "
    "else 0; C classes; H_m = 1 + 1/2 + … + 1/m; the value is the (weighted) mean over validation points."
)

_ALL = (
    # ------------------------------------------------------------------------------------------ what is it worth?
    Method(
        key="knn-shapley",
        title="k-NN Shapley value",
        question="How much does each record add to how well its neighbours predict the validation labels?",
        idea=(
            "A record's value is its average contribution, over all coalitions of the other records, to a "
            "k-nearest-neighbour classifier. For that classifier no coalition has to be visited: records sorted by "
            "distance tell all of it, from the farthest rank inwards. The utility soft divides by the neighbours "
            "that are there and gives nobody at all the score of guessing, 1/C; fraction always divides by k. "
            "Without validation data every record is valued by all the others."
        ),
        formula=(
            f"{_RANKS}\n"
            "fraction: v(S) = (1/k) Σ b over the min(k, |S|) nearest in S\n"
            "φ_N = b_N / max(k, N);  φ_i = φ_{i+1} + (b_i − b_{i+1}) / max(k, i)\n"
            "soft: v(S) = mean of b over the min(k, |S|) nearest in S;  v(∅) = 1/C\n"
            "φ_soft = φ_fraction + (H_K − 1)/(N − 1) · (b − S/N) − 1/(C·N),  K = min(k, N) in both terms, S = Σ b "
            "(the middle term is 0 for N = 1)"
        ),
        guarantee=(
            "Exact. Values add up to v(D) − v(∅): what the classifier scores less what guessing scores (soft) or 0 "
            "(fraction). With tolerance ε only the J = max(k, ⌈1/ε⌉) nearest are looked at, and every value is "
            "within 1/J ≤ ε of the exact one; the result has the bounds. The same bits for any number of threads."
        ),
        cost=(
            "O(N·d + N log N) a validation point, d features; memory is bounded by blocks. Measured: 50,000 records × "
            "100 validation points in 0.034 s on two cores, 163 times faster than pyDVL in the same run; 1,000,000 × "
            "100 in 1.1 s with 314 MiB above the data."
        ),
        not_for=(
            "It values records for a nearest-neighbour classifier: for your own model use data-shapley, and for few "
            "owners it is exact there, too. It supposes that nearness means something: scale the features. A low "
            "value alone is no verdict; with classes of unequal size weigh the validation points (balance_weights). "
            "Values depend on other people's records: to tell them, use private-tknn-shapley."
        ),
        reference=f"{_JIA} {_SOFT} Its formula is wrong for N < k as printed; K = min(k, N) mends it.",
        functions=("knn_shapley", "balance_weights", "tune_k"),
    ),
    Method(
        key="knn-banzhaf",
        title="k-NN Banzhaf value",
        question="What does each record add if every other one is present by the toss of a fair coin?",
        idea=(
            "Where the Shapley value gives every size of coalition the same weight, the Banzhaf value gives it to "
            "every coalition. For k-NN the chance that rank j is the k-th record chosen is a negative binomial "
            "weight, so the value is one suffix sum over the ranking. The weights peak near j = 2k: only the "
            "nearer neighbours matter."
        ),
        formula=(
            f"{_RANKS}\n"
            "φ_i = (1/k) · [ b_i · P(Bin(N−1, ½) < k) + Σ_{j>i} (b_i − b_j) · C(j−2, k−1) / 2^{j−1} ]"
            "   (utility fraction)"
        ),
        guarantee=(
            "Exact to double precision: weights a thousand ranks beyond 2k are zero there. With a tolerance, J "
            "neighbours leave an error of at most P(Bin(J−1, ½) < k)/k, and J is chosen from it. Values do not add "
            "up to a total."
        ),
        cost="O(N·d) a validation point to find the nearest J, then one suffix sum over about a thousand ranks.",
        not_for=(
            "Payments that must add up: use knn-shapley. Records far from every validation point: their values "
            "are zero to double precision, and say nothing about their order."
        ),
        reference=f"{_BANZHAF} The closed form for k-NN is datassay's, checked against enumeration.",
        functions=("knn_banzhaf",),
    ),
    Method(
        key="knn-loo",
        title="k-NN leave-one-out",
        question="What does the classifier lose if this one record is taken out and all others stay?",
        idea=(
            "Only the k nearest of a validation point vote. When one of them goes, rank k + 1 moves up; nobody "
            "else's absence is noticed. It is the simplest value, and for large data most of it is zero."
        ),
        formula=(
            f"{_RANKS}\n"
            "φ_i = (b_i − b_{k+1}) / k for i ≤ k < N;  0 for i > k\n"
            "for N ≤ k: v(D) − v(D∖i) by the utility's own definition"
        ),
        guarantee="Exact. Values do not add up to a total.",
        cost="O(N·d) a validation point to find the nearest k + 1.",
        not_for=(
            "Finding mislabelled records or paying people: copies of a record cover for each other, and whoever is not "
            "among the k nearest is worth nothing. Use knn-shapley."
        ),
        reference="Cook, Detection of Influential Observation in Linear Regression, 1977, for the idea.",
        functions=("knn_loo",),
    ),
    Method(
        key="tknn-shapley",
        title="Threshold k-NN Shapley value (TKNN)",
        question="How much does each record add if everybody within a distance τ of a validation point votes?",
        idea=(
            "Neighbours are all records within τ, not the k nearest. Then two counts a validation point tell every "
            "value: how many neighbours have its label, how many have another. Nothing is sorted, records beyond τ "
            "are worth nothing, and the number of records does not enter, which is why these values can be made "
            "private at little cost."
        ),
        formula=(
            "v(S) = share of labels that match among S within τ;  1/C where nobody is\n"
            "φ_i = (b − 1/C)/c + [c ≥ 2] · (b/c − (p − b)/(c(c−1))) · (H_c − 1) for a neighbour;  0 for others\n"
            "c neighbours in D, p of them matching, b = 1 if record i matches; H_c = 1 + 1/2 + … + 1/c\n"
            "distance by default: minus the cosine similarity, so τ = −0.5 means a similarity of at least 0.5"
        ),
        guarantee="Exact. Values add up to v(D) − v(∅).",
        cost=(
            "O(N·d) a validation point, without sorting. Measured: 1,000,000 records × 100 validation points in 0.35 "
            "s, 5.4 times faster than k-NN Shapley with the same distance."
        ),
        not_for=(
            "Data where no one τ suits all places: validation points with nobody within τ tell nothing, and with "
            "everybody within it they tell little. tune_tau chooses τ by accuracy; else use knn-shapley."
        ),
        reference=f"{_TKNN}. Simplified: the sum over all data sizes in the paper is H_c − 1.",
        functions=("tknn_shapley", "tune_tau"),
    ),
    Method(
        key="waka",
        title="WaKA: Wasserstein k-NN attribution",
        question="How far does a record move the distribution of the loss over all models that could be made?",
        idea=(
            "Take every subset of the data as a k-NN model and look at its loss on one point: the share of wrong "
            "labels among the k nearest. WaKA is the 1-Wasserstein distance between the distributions of that loss "
            "with and without the record. A record moves the loss one way only, so the distance is the shift of the "
            "mean, and for all records of a point it is one suffix sum. Variants count only moves that matter for "
            "removal (utilities above 1 − τ) or for addition (losses up to τ)."
        ),
        formula=(
            f"{_RANKS}\n"
            "WaKA_i = (1/2k) · Σ_{j>i, b_j≠b_i} C(j−2, k−1) / 2^{j−1}  = half the |Banzhaf value| over |S| ≥ k\n"
            "signed: + where labels match, − where they do not\n"
            "removal: +(1/k) Σ_{l>1−τ} |ΔF_{1−ℓ}(l)| where labels match, −(1/k) Σ_l |ΔF_ℓ(l)| otherwise\n"
            "addition: +(1/k) Σ_l |ΔF_{1−ℓ}(l)| where labels match, −(1/k) Σ_{l≤τ} |ΔF_ℓ(l)| otherwise\n"
            "F_ℓ and F_{1−ℓ} the distribution functions of loss and utility, l in {0, 1/k, …, 1}, Δ with less without"
        ),
        guarantee=(
            "Exact to double precision, checked against enumeration. With a tolerance, J neighbours leave an error of "
            "at most P(Bin(J−1, ½) < k)/(2k). With k or fewer records nobody is displaced and values are 0."
        ),
        cost="O(N·d + J) a validation point for signed, O(N·d + kJ) for removal and addition; J is about a thousand.",
        not_for=(
            "Payments that must add up: use knn-shapley. On Adult removal by WaKA keeps the minority class where "
            "removal by k-NN Shapley values does not; which serves your data, removal-curve shows."
        ),
        reference=f"{_WAKA}; {_THESIS}, chapter 2. Corrected: see the errata.",
        functions=("waka",),
    ),
    Method(
        key="data-shapley",
        title="Data Shapley value, any model",
        question="What does each record, or each owner, add to the score of my own model?",
        idea=(
            "A coalition is worth the score, on validation records, of the model fitted to it. The value is the mean, "
            "over orders in which records join, of what each adds when it comes. Orders are drawn at random, each "
            "together with its reverse; where all coalitions are few enough, as for a dozen owners, they are all "
            "visited."
        ),
        formula=(
            "φ_i = (1/n) Σ_{k=0}^{n−1} mean over coalitions C of k others of [v(C∪i) − v(C)]\n"
            "v(C) = score on the validation set of the model fitted to C;  v(∅) = the score of guessing, unless given"
        ),
        guarantee=(
            "Estimates with Student's intervals from independent draws (with 30 draws or more, 93 to 97% of nominal "
            "95% intervals hold the exact value), or exact where all 2^n coalitions are within max_coalitions. "
            "Values add up to v(D) − v(∅). Truncation biases them in a way that no interval shows."
        ),
        cost=(
            "n fits an order. Measured: logistic regression, 200 records, 30 orders in 0.14 s, 61 times faster than "
            "pyDVL on the same orders; decision trees 2.2 s, 2.3 times faster."
        ),
        not_for=(
            "Finding mislabelled records among thousands: with 10,000 fits on 2,000 records the AUROC is 0.55, where "
            "k-NN values have 0.83 to 0.92. Use knn-shapley or data-oob there, and this for owners."
        ),
        reference=(
            "Ghorbani & Zou, Data Shapley: Equitable Valuation of Data for Machine Learning, 2019. Mitchell et al., "
            "Sampling Permutations for Shapley Value Estimation, 2022."
        ),
        functions=("data_shapley",),
    ),
    Method(
        key="data-banzhaf",
        title="Data Banzhaf value, any model",
        question="What does each record add to my model on average over all coalitions, each counting the same?",
        idea=(
            "Every coalition is drawn by tossing a coin for each record. Each one drawn tells about everybody: those "
            "who are in it and those who are not (maximum sample reuse). The order of values is less disturbed by "
            "scores that are noisy, such as those of models fitted with a random state."
        ),
        formula="φ_i = mean of v(C) over drawn C with i − mean of v(C) over drawn C without i",
        guarantee=(
            "Estimates with intervals, or exact where all coalitions are visited. Values do not add up to a total."
        ),
        cost="One fit a coalition drawn, 10,000 unless said otherwise; each serves every record.",
        not_for="Payments that must add up: use data-shapley. Mislabelled records: use knn-shapley or data-oob.",
        reference=_BANZHAF,
        functions=("data_banzhaf",),
    ),
    Method(
        key="beta-shapley",
        title="Beta Shapley value, any model",
        question="What does each record add to my model if small coalitions are to count more than large ones?",
        idea=(
            "In a large coalition one record hardly shows; in a small one it does. Beta Shapley weighs the sizes of "
            "coalitions by a beta-binomial distribution: with α > β small ones count more. Beta(1, 1) is the Shapley "
            "value; the default is Beta(16, 1)."
        ),
        formula=(
            "φ_i = Σ_{k=0}^{n−1} P(k) · mean over coalitions C of k others of [v(C∪i) − v(C)]\n"
            "P(k) = C(n−1, k) · B(k + β, n − 1 − k + α) / B(β, α), B the beta function"
        ),
        guarantee=(
            "Estimates with intervals, or exact where all coalitions are visited. Where single draws count for much, "
            "as in Beta(16, 1), intervals need a hundred draws. Values do not add up to a total."
        ),
        cost="As data-shapley, but an order is followed only as far as its sizes count.",
        not_for="Payments that must add up: use data-shapley.",
        reference="Kwon & Zou, Beta Shapley: a Unified and Noise-reduced Data Valuation Framework, 2022.",
        functions=("beta_shapley",),
    ),
    Method(
        key="leave-one-out",
        title="Leave-one-out, any model",
        question="What does the score of my model lose if one record is left out?",
        idea="The model is fitted once to everybody and once without each record. The difference is the value.",
        formula="φ_i = v(D) − v(D∖i)",
        guarantee="Exact. Values do not add up to a total.",
        cost="One fit a record on all the others, and one on everybody.",
        not_for=(
            "Large data: one record among many rarely changes a model, and most values are 0 or nearly so. Redone on "
            "2,000 records it finds mislabelled ones with an AUROC of 0.50 to 0.52. Use knn-shapley or data-oob."
        ),
        reference="Cook, Detection of Influential Observation in Linear Regression, 1977.",
        functions=("leave_one_out",),
    ),
    Method(
        key="data-oob",
        title="Out-of-bag value",
        question="How often do models that have not seen a record get it right?",
        idea=(
            "Models are fitted to bags, samples as large as the data drawn with replacement; about 37% of the records "
            "are not in a bag, and the model is tried on those. A mislabelled record is predicted wrong by most "
            "of them. There is no validation set."
        ),
        formula=(
            "φ_i = mean over bags without i of [model of the bag gives y_i at x_i]   (classifier)\n"
            "φ_i = mean over bags without i of −(prediction at x_i − y_i)²   (regressor)"
        ),
        guarantee="Estimates with intervals over bags. Values do not add up to a total.",
        cost="One fit a bag, 1,000 unless said otherwise; each bag tells about a third of the records.",
        not_for=(
            "Worth in the sense of a contribution: a record that is easy to predict has a high value whether or not "
            "it is needed. Use data-shapley or knn-shapley."
        ),
        reference="Kwon & Zou, Data-OOB: Out-of-bag Estimate as a Simple and Efficient Data Value, 2023.",
        functions=("data_oob",),
    ),
    Method(
        key="layered-shapley",
        title="Layered Shapley value",
        question="What are the Shapley values for my model, to within an error that I name beforehand?",
        idea=(
            "If a record adds at most c/k to the score of k others, small coalitions tell nearly everything: larger "
            "layers need few draws. Coalitions are drawn by index, before any data is seen, so that the number of "
            "fits is known and the design can be kept and used again for newcomers. For L2-regularised logistic "
            "regression c is known: κ²/λ, for records no longer than κ."
        ),
        formula=(
            "φ̂_i = (1/n) Σ_{k≥0} (1/m_k) Σ_{C in layer k} [v(C∪i) − v(C)]\n"
            "m_k = c²/(2α²k²) · ln(2n/β) expected coalitions of size k; m_k < 1 are drawn with that chance, "
            "m_k ≥ C(n−1, k) are visited whole; k = 0 is there"
        ),
        guarantee=(
            "A value is off by more than α with a chance of at most β, if a record adds at most c/k to k others: "
            "known for StableLogisticRegression, yours to vouch for otherwise. Intervals of the observed sampling "
            "error stand beside it."
        ),
        cost=(
            "O(ln n) coalitions a record, known before it starts (design.fits). bound='bernstein' keeps the promise "
            "with fewer: a thirteenth for n = 100, α = 0.05."
        ),
        not_for=(
            "A few owners: data-shapley visits all coalitions and is exact. Models whose stability nobody knows: the "
            "promise then rests on nothing. scikit-learn's logistic regression at a fixed C is such a model."
        ),
        reference=f"{_LAYERED}; Bousquet & Elisseeff, Stability and Generalization, 2002. Corrected: see the errata.",
        functions=("layered_shapley", "layered_design", "load_design", "StableLogisticRegression"),
    ),
    Method(
        key="label-errors",
        title="Likely label errors",
        question="Which records are probably mislabelled, and which should I look at first?",
        idea=(
            "Two signs must agree. The record harms its neighbours: its k-NN Shapley value is negative. And its "
            "neighbours, itself left out, vote for another class with at least that class's usual confidence: the mean "
            "share of votes that records of that class get for their own label. Suspects are ranked by value, the "
            "lowest first."
        ),
        formula=(
            "p_i(c) = share of label c among the k nearest others of record i\n"
            "t_c = mean of p_i(c) over records i with label c\n"
            "suspect: φ_i < 0, p_i(c) ≥ t_c and p_i(c) > p_i(y_i), c the class of most votes;  order: φ_i ascending"
        ),
        guarantee=(
            "Values and votes are exact; that a suspect is mislabelled is an inference, not a proof. Known errors can "
            "be held against it with detect-errors."
        ),
        cost="Two neighbour searches, one of them for knn-shapley.",
        not_for=(
            "Deleting without looking: rare but right records can be suspects. Labels that are numbers. A class so "
            "small that its members are not among each other's k nearest."
        ),
        reference=(
            "Northcutt, Jiang & Chuang, Confident Learning: Estimating Uncertainty in Dataset Labels, 2021, for the "
            f"thresholds. {_JIA}"
        ),
        functions=("likely_errors",),
    ),
    Method(
        key="detect-errors",
        title="How well values find errors",
        question="If some faults are known, or planted, do low values point to them?",
        idea=(
            "Values are read as a detector, the lowest being the most suspicious. AUROC is the chance that a random "
            "fault has a lower value than a random clean record; precision is the share of faults among as many lowest "
            "values as there are faults. Without known faults, plant some: flip labels or add noise, and see whether "
            "they are found."
        ),
        formula=(
            "AUROC = P(φ_fault < φ_clean) + ½ · P(φ_fault = φ_clean)\n"
            "precision = share of faults among the n_faults lowest values (ties at the cut count in proportion)"
        ),
        guarantee="Exact for the records given. Planted faults are faults of the kind that was planted.",
        cost="O(N log N).",
        not_for="Data without known or planted faults: there is nothing to score. Use label-errors to find suspects.",
        reference=f"{_TKNN}, section 5, for the experiment; its AUROCs come out to all digits printed.",
        functions=("detect_errors", "corrupt_labels", "corrupt_features"),
    ),
    Method(
        key="removal-curve",
        title="Removal and addition curves",
        question="What happens to a classifier as records go, or come, in the order of their value?",
        idea=(
            "Records are removed, the least valuable first, or added, the most valuable first, and the classifier is "
            "scored on test records each time, beside random orders. A good value keeps the score up longer than "
            "chance. The ratio of the smallest to the largest class is followed as well, since removal by value can "
            "wear a class away."
        ),
        formula=(
            "score(f) = score on the test set of the classifier fitted to D without the share f of lowest value\n"
            "random: mean and 5% and 95% quantiles over n_random orders"
        ),
        guarantee="Exact for the given test set. The test set must have played no part in the values.",
        cost="One ranking for all steps of k-NN; one fit a step for another model.",
        not_for="Choosing how much to remove on the same records that judge it: keep a test set apart.",
        reference="Ghorbani & Zou, Data Shapley: Equitable Valuation of Data for Machine Learning, 2019.",
        functions=("removal_curve", "addition_curve"),
    ),
    # -------------------------------------------------------------------------------------------- what does it leak?
    Method(
        key="self-shapley",
        title="Self-Shapley",
        question="How much does a record need itself to be predicted right?",
        idea=(
            "The record is its own validation point and its own nearest neighbour, whatever its duplicates. Its value "
            "is high where nobody else nearby has its label: such a record is unusual, perhaps mislabelled, and its "
            "presence shows."
        ),
        formula=(
            "φ_1 = 1/k − Σ_{j>k} b_j / (j(j−1)), b_j over ranks j of the others by distance to the record "
            "(fraction);  soft: the shift of k-NN Shapley on top"
        ),
        guarantee="Exact, or within a stated tolerance. Values do not add up to a total.",
        cost="One neighbour ranking of every record among all others: O(N²·d), in blocks.",
        not_for="Worth to others: use knn-shapley. Here high values are the suspicious ones.",
        reference=f"{_JIA} {_THESIS}, chapter 2.",
        functions=("self_shapley",),
    ),
    Method(
        key="self-waka",
        title="Self-WaKA: how much a record's presence shows",
        question="How exposed is each record to somebody who sees a model's loss on it?",
        idea=(
            "WaKA with the record as its own validation point and at rank 1: how far its presence moves the "
            "distribution of its own loss over all models that could be made. It needs no shadow models and no attack, "
            "and goes with how well membership attacks do."
        ),
        formula="self-WaKA = (1/2k) · Σ over ranks j ≥ 2 with another label of C(j−2, k−1) / 2^{j−1}",
        guarantee="Exact to double precision, or within a stated tolerance. A description, not a privacy guarantee.",
        cost=(
            "One search for each record's nearest neighbours; the sum is next to nothing. Measured: all 48,842 records "
            "of Adult, 107 features, to 1e-12 in 19.8 s, of which 99.8% is the neighbour search."
        ),
        not_for=(
            "A model that is not k-NN: play membership-attack against it. A promise that nothing leaks: see "
            "private-tknn-shapley."
        ),
        reference=f"{_WAKA}; {_THESIS}, chapter 2.",
        functions=("self_waka",),
    ),
    Method(
        key="waka-influence",
        title="WaKA influence of a removal",
        question="Who is more exposed, and who less, when some records are removed?",
        idea=(
            "Removing records takes away those who vouched for others or hid them. The influence is the change of "
            "self-WaKA of everybody who remains: evaluated again without all of the removed, or added up over removing "
            "each one alone, as published. Both take one pass."
        ),
        formula=(
            "exact: self-WaKA(z; D − Z) − self-WaKA(z; D)\n"
            "published: WaKAInf(Remove(Z) ⇒ z) = Σ_{z_j∈Z} [self-WaKA(z; D − z_j) − self-WaKA(z; D)]"
        ),
        guarantee="Exact, either way; a tolerance bounds the error where asked for.",
        cost="One neighbour search, as self-waka.",
        not_for="The effect on an attack's success itself: play onion, which attacks again.",
        reference=f"{_THESIS}, chapter 2.",
        functions=("waka_influence",),
    ),
    Method(
        key="membership-attack",
        title="Membership attacks (LiRA, t-WaKA, confidence)",
        question="Can one tell from a model's loss on a record whether the record was in its training data?",
        idea=(
            "Security games: half of the population is the model's, and the attacker scores targets by the loss they "
            "see. LiRA compares the loss with those of shadow models with and without the target; t-WaKA asks what the "
            "target itself moves of the losses at or above the one observed, and needs no shadow models; confidence "
            "compares with a k-NN of everybody else. For k-NN no model is fitted: each target's neighbours are found "
            "once, and who is in which model is one bit."
        ),
        formula=(
            "LiRA: log N(ℓ*; μ_in, s_in) − log N(ℓ*; μ_out, s_out), Gaussians fitted to shadow losses\n"
            "t-WaKA: (1/k) · [ Σ_{l≥ℓ*} |ΔF(l)| − Σ_{l<ℓ*} |ΔF(l)| ], ℓ* the loss observed\n"
            "AUC; true-positive rate at 5% and 1% false positives; success on a record: mean of games with, without it"
        ),
        guarantee=(
            "An empirical finding about these games, with bootstrap intervals. An attack that fails proves no safety: "
            "another may succeed."
        ),
        cost=(
            "Measured, 48 games on 10,000 records of Adult, all of them targets, k = 5: t-WaKA 1.0 s, LiRA 2.8 s; "
            "199 and 72 times faster than LiRA with refitted scikit-learn models. Another model is fitted once for "
            "each shadow set."
        ),
        not_for=(
            "A proof of privacy: use a differentially private release. LiRA on large k with few shadow models: it "
            "wants more of them as k grows, where t-WaKA wants none."
        ),
        reference=f"{_LIRA}. {_WAKA}. {_THESIS}, chapter 2.",
        functions=("membership_attack",),
    ),
    Method(
        key="value-and-exposure",
        title="Value beside exposure",
        question="Whose record is exposed, and is it worth having all the same?",
        idea=(
            "Each record's value is joined by id with its exposure (self-WaKA, or an attack's success on it). The "
            "lowest quarter of values and the highest quarter of exposures cut four fields: delete first (low value, "
            "exposed), of little use (low value), protect (worth having, exposed), keep."
        ),
        formula=(
            "low value: φ_i ≤ quantile 0.25 of φ;  exposed: e_i ≥ quantile 0.75 of e (quantiles of your choice)\n"
            "delete first = low and exposed;  protect = not low and exposed"
        ),
        guarantee="As exact as the two results that go in.",
        cost="O(N log N).",
        not_for=(
            "Deciding for a person: the lines are quantiles, so a quarter is always low. Deleting changes the exposure "
            "of others: ask waka-influence or onion."
        ),
        reference=f"{_THESIS}, chapters 1 and 2.",
        functions=("value_and_exposure",),
    ),
    Method(
        key="onion",
        title="The onion experiment",
        question="If the most exposed records are removed, are the rest safe?",
        idea=(
            "LiRA attacks everybody; the most exposed tenth, by self-WaKA, self-Shapley, the attack's own success, or "
            "at random, is removed; LiRA attacks the rest. Some of those who remain become exposed in their turn, like "
            "the next layer of an onion. WaKA influence, which needs no attack, stands beside the change."
        ),
        formula=(
            "change of z = success of LiRA on z in D − Z, less that in D;  Z the share (0.1) that ranks highest\n"
            "AUC and true-positive rate at 5% false positives, before and after"
        ),
        guarantee=(
            "Empirical. Chosen by success, those who remain were lucky in the first games, and some of their change is "
            "chance."
        ),
        cost="Two membership attacks on all records, 48 games each.",
        not_for="Small data: success rates of single records over few games are coarse.",
        reference=f"Carlini et al., The Privacy Onion Effect: Memorization is Relative, 2022. {_THESIS}, chapter 2.",
        functions=("onion",),
    ),
    Method(
        key="value-score-attack",
        title="Value-score attack",
        question="Do the values that I tell give away who is in the data?",
        idea=(
            "The attacker submits a copy of somebody's record and sees what it is worth. In shadow data sets with the "
            "record (IN) and without it (OUT) the copy is worth different amounts; a Gaussian likelihood ratio says "
            "which is likelier. On open values it works, on private ones it should not."
        ),
        formula=(
            "IN: φ of the copy on shadow ∪ {z};  OUT: φ of the copy on shadow\n"
            "score = log N(φ; μ_in, s_in) − log N(φ; μ_out, s_out)"
        ),
        guarantee=(
            "Empirical, with bootstrap intervals. Redone on four data sets: AUROC up to 0.715 on open values, 0.503 on "
            "average on private ones at ε = 0.5 and 1."
        ),
        cost="Values of copies of 400 targets in 32 shadow sets of the members' size.",
        not_for="A proof that values are safe to tell: for that there is private-tknn-shapley, and audit.",
        reference=f"{_TKNN}, algorithm 1 (its lines 5, 6 and 9 corrected).",
        functions=("value_score_attack",),
    ),
    # ---------------------------------------------------------------------------------------------- who can be found?
    Method(
        key="uniqueness-shapley",
        title="Uniqueness Shapley value",
        question="Which attributes single each person out, and by how many bits?",
        idea=(
            "Reveal some attributes of a person and the crowd they can hide in shrinks: one bit for each time it is "
            "halved. An attribute's value for a person is what it adds to that, averaged over all orders in which "
            "attributes may be revealed. Means over everyone are sums of conditional entropies; means over a group say "
            "what makes it stand out."
        ),
        formula=(
            "val(u) = −log₂(N(u)/n), N(u) people of n who match in the attributes u\n"
            "φ_j = Shapley value of attribute j;  φ_j ≥ 0;  Σ_j φ_j = log₂(n / N(all))"
        ),
        guarantee=(
            "Exact up to 20 attributes that vary; beyond, or on request, estimated from random orders with Student's "
            "intervals (95% ones covered 92 to 96% of the time). A description of this table: who is unique in a "
            "sample need not be in the population."
        ),
        cost=(
            "Linear in distinct rows; at most twice as much with each attribute. Measured: 7,538,125 simulated voters "
            "× 5 attributes in 0.59 s, 1.9 times one GROUP BY of the five columns in DuckDB; 253,563 × 5 in 0.10 s."
        ),
        not_for=(
            "Measurements with decimals as they are: nearly everyone is unique in one; say how finely it is known "
            "(coarsening). The risk of a release that differs from the table: use reidentification-risk."
        ),
        reference=f"{_UNIQUE}",
        functions=("uniqueness_shapley", "group_sizes", "suggest_coarsening", "measured_bins"),
    ),
    Method(
        key="coarsening",
        title="Coarsening an attribute",
        question="What would telling ages by decade, or the county instead of the zip code, change?",
        idea=(
            "An attribute is replaced by a coarser one (wider bins, leading characters, the year of a date, another "
            "column, nothing at all), one change at a time, and uniqueness is asked again: bits of every attribute "
            "and the share of people who are unique (compare); the smallest group (group_sizes). A plan "
            "(suggest_coarsening) tries wider bins, fewer digits of codes and rare categories put together for the "
            "attributes that tell most, takes the change that leaves the fewest people unique, and goes on from there; "
            "where no such change helps, it leaves an attribute out. Numbers with decimals are taken to be known in "
            "bins (measured_bins)."
        ),
        formula=(
            "found.compare(coarsen={'age': (5, 10, 25), 'zip': 'county'}): φ and who is unique, each change alone\n"
            "step s of a plan = the change, among those tried, of least share of unique people given steps 1 … s−1"
        ),
        guarantee=(
            "Who is unique is counted exactly after every change, as in a table that was coarsened beforehand. A plan "
            "is greedy: there may be a shorter one."
        ),
        cost="One uniqueness calculation for each change of compare; for a plan, one count of distinct rows for each.",
        not_for=(
            "A release by itself: coarse attributes together can still single people out. mondrian makes groups of at "
            "least k (release-strategies)."
        ),
        reference=f"{_UNIQUE} Sweeney, k-Anonymity: A Model for Protecting Privacy, 2002, for groups.",
        functions=("uniqueness_shapley", "group_sizes"),
    ),
    Method(
        key="reidentification-risk",
        title="Re-identification risk (RRS)",
        question="How likely is it that a person is found in what was released, by somebody who knows a part of them?",
        idea=(
            "An attacker who knows attributes R of a person singles out the released records nearest on R. Linkability "
            "says whether these are nearer to the person than the person's neighbours in the original are; information "
            "gain says how much of the rest they tell. The risk is the mean of the product over what attackers may "
            "know. Beside it stand the scores of guessing, and of the attack on people who are not there."
        ),
        formula=(
            "L(t) = 1 − 2Φ((d(o, t) − μ)/s) if d(o, t) ≤ μ, else 0;  L the mean over the records singled out\n"
            "μ, s: mean and deviation of o's distances to the nearest 2% (at least 5) in the original; 0 if μ = 0\n"
            "I = mean of γ · (1 − E/Σ_{A∖R} ζ), E = Σ_{A∖R} ζ |o − t|, γ = log(1 + ε₁x)/log(1 + ε₁), "
            "x = Σ_{A∖R} ζ / Σ_A ζ;  0 if everything was known\n"
            "risk = weighted mean over R of L · max(I, ε₂);  ε₁ = 100, ε₂ = 0.5"
        ),
        guarantee=(
            "What this attack finds; no bound on what others find. With few attributes all sets are played; otherwise "
            "the beginnings of 50 random orders for each person, with an interval. Who is not in it has risk 0."
        ),
        cost=(
            "Measured: 1,000 people × 50 orders on 10,977 records of Adult in 10.2 s, 142 times faster than by "
            "BallTree queries."
        ),
        not_for=(
            "A guarantee: only differential privacy gives one here. A number without its context: read risk.verdict(), "
            "which compares with chance and with people who are not there."
        ),
        reference=f"{_THESIS}, chapter 1. The printed linkability is negative at distance 0; corrected.",
        functions=("reidentification_risk", "score_queries"),
    ),
    Method(
        key="reidentification-shapley",
        title="Re-identification Shapley value (RSV)",
        question="Which attributes give a person away in what was released?",
        idea=(
            "The score of an attacker depends on which attributes they know: a game among attributes. An attribute's "
            "value is what it adds, averaged over all orders of learning them."
        ),
        formula=(
            "v(R) = L(R) · max(I(R), ε₂), as in reidentification-risk;  v(∅) = 0;  RSV_j the Shapley value of j\n"
            "Σ_j RSV_j = v(all attributes)"
        ),
        guarantee=(
            "Exact by visiting all sets of few attributes, otherwise 50 random orders for each person with intervals; "
            "values of a person add up. They can be negative: who knows one attribute more has one less to learn."
        ),
        cost="Measured: 1,000 people × 50 orders on 10,977 records of Adult in 10.0 s.",
        not_for="The table itself, before any release: uniqueness-shapley answers that exactly, in bits.",
        reference=f"{_THESIS}, chapter 1.",
        functions=("reidentification_shapley",),
    ),
    # --------------------------------------------------------------------------------- what to release, and to trade?
    Method(
        key="release-strategies",
        title="Release strategies",
        question="Which version of the table may leave?",
        idea=(
            "keep: as it is. remove: without a share of the people, at random or those of least value. mondrian: "
            "people in groups of at least k that are alike, each attribute replaced by a value of the group, so that "
            "the format stays. synthesize: made-up people from a Gaussian copula, or from CTGAN or TVAE. Each is "
            "attacked and used, and they are shown side by side with those that nothing beats."
        ),
        formula=(
            "mondrian: cut a group along the attribute in which it differs most, between two values, as nearly in half "
            "as can be, while both halves have k people (and l different sensitive values, and closeness t)\n"
            "best trade-off: no other strategy has both less risk and more utility (Pareto front)"
        ),
        guarantee=(
            "mondrian: no group smaller than k in the attributes made alike (k-anonymity), and l-diversity and "
            "t-closeness where asked for; checked with pycanon. None of these is differential privacy. Synthetic is "
            "not anonymous: its risk is measured."
        ),
        cost="Measured: mondrian, 48,842 people × 13 attributes in 0.15 s.",
        not_for=(
            "A promise against attackers who know anything: k-anonymity does not make one. Removal as protection: it "
            "helps those removed, and the others little."
        ),
        reference=(
            "LeFevre, DeWitt & Ramakrishnan, Mondrian Multidimensional K-Anonymity, 2006. Sweeney, k-Anonymity, 2002. "
            f"{_THESIS}, chapter 1."
        ),
        functions=("compare_releases", "release.keep", "release.remove", "release.mondrian", "release.synthesize"),
    ),
    Method(
        key="release-utility",
        title="Utility of a release",
        question="How like the original is a release, and what can still be learned from it?",
        idea=(
            "Fidelity compares each attribute's distribution in the release with that in the original, in parts of how "
            "far uniform draws would be. Prediction trains a k-NN on the release and scores it on people who are in "
            "neither table."
        ),
        formula=(
            "fidelity = (W_rand − W)/W_rand, W the mean over attributes of the 1-Wasserstein distance (numbers scaled "
            "to 0…1, categories 0/1), W_rand that of uniform draws from each attribute's domain\n"
            "MCC = (TP·TN − FP·FN)/√((TP+FP)(TP+FN)(TN+FP)(TN+FN)) for two classes; F1, accuracy, loss"
        ),
        guarantee=(
            "Exact for the tables given. Fidelity 1 means equal distributions of each attribute, not equal tables. The "
            "MCC of one small test set is uncertain: on 150 people its standard error is near 0.08."
        ),
        cost="O(N log N) an attribute; one neighbour search for prediction.",
        not_for=(
            "Utility for another use than prediction by k-NN: train your own model on the release. Relations between "
            "attributes: fidelity looks at each attribute by itself."
        ),
        reference=f"{_THESIS}, chapter 1.",
        functions=("release.fidelity", "release.predictive_utility", "compare_releases"),
    ),
    Method(
        key="private-tknn-shapley",
        title="Private TKNN Shapley value",
        question="How can every owner be told what their record is worth without giving the others away?",
        idea=(
            "Threshold values need two counts a validation point: neighbours with its label, and others. One record "
            "moves one of them by one. The counts are released once with discrete Gaussian noise, and every value "
            "follows from them and the owner's own record, so owners learn nothing by colluding and newcomers are "
            "valued at no cost. The validation set is public."
        ),
        formula=(
            "released: (n₊ + noise, n₋ + noise) for each validation point, noise discrete Gaussian of scale σ\n"
            "sensitivity 1 a point (add-remove), √2 (replace); over N_val points √N_val times that, or √m with "
            "geometry, m the most validation points that one record can be near\n"
            "value of i: its own contribution taken out, c = 1 + n₊ + n₋, clipped; then the formula of tknn-shapley"
        ),
        guarantee=(
            "(ε, δ)-differential privacy, neighbouring relation add-remove or replace as named; σ from privacy-loss "
            "distributions (or the closed form of Gaussian noise). Audience: owner, each their own value, any number "
            "of whom may collude (joint differential privacy); the noisy counts may be public. The list of all values "
            "may not: a value depends openly on its own record."
        ),
        cost=(
            "Measured: 1,000,000 records × 1,000 validation points, 1.04 times the 1.9 s of open values; 1.18 times "
            "with 1% sampling. Quality at ε = 0.1, δ = 1e-4, sampling 1%: AUROC 0.913 to find mislabelled records of "
            "2dplanes where open values have 0.920."
        ),
        not_for=(
            "A validation set that is private, or part of the data: the promise does not cover it. Features scaled by "
            "private statistics. Several records of one person: ε is about one record."
        ),
        reference=f"{_TKNN}. Fewer counts than published, and its noise formula corrected: see the errata.",
        functions=("private_tknn_shapley",),
    ),
    Method(
        key="private-knn-shapley",
        title="Private k-NN Shapley value (baseline)",
        question="What would private values cost without threshold neighbours?",
        idea=(
            "A fraction k-NN value moves by at most 1/(k(k+1)) when another record comes, goes or is replaced. Every "
            "owner's value gets Gaussian noise of its own. It is the baseline of the literature, kept to compare with."
        ),
        formula="sensitivity 1/(k(k+1)) a validation point, add-remove and replace alike;  φ_i + Gaussian noise",
        guarantee=(
            "(ε, δ)-differential privacy, add-remove or replace as named. Audience: owner, no collusion. Noise is "
            "independent from owner to owner, so owners who share their values weaken it; the result says by how much."
        ),
        cost="As knn-shapley; with sampling every owner needs a fresh sample, O(N²).",
        not_for=(
            "Use: values are of the order 1/N and the noise is not; without sampling the AUROC of finding mislabelled "
            "records is 0.5. Use private-tknn-shapley."
        ),
        reference=f"{_TKNN}, appendix B.4.",
        functions=("private_knn_shapley",),
    ),
    Method(
        key="private-layered-shapley",
        title="Private Layered Shapley value",
        question="Can values for a logistic regression be told privately, and would they say anything?",
        idea=(
            "Coalitions are drawn by index, whatever the data are, and the stability of the learner bounds how far one "
            "record moves each score. For the drawn design that gives the noise that is necessary, and no more. It is "
            "large, so the rank correlation to expect is predicted from public records before anything is spent."
        ),
        formula=(
            "Δ_ij = Σ over drawn C with j and without i of (γ_k + γ_{k+1}) / (n·m_k);  γ_m = 2κ²/(λm) or sharper\n"
            "φ̂_i + Laplace(max_j Δ_ij / ε)"
        ),
        guarantee=(
            "ε-differential privacy, δ = 0, neighbouring relation replace, for every design, even a published one; no "
            "amplification is claimed. Audience: owner, no collusion: g who share have g·ε, or less at some δ. "
            "noise='paper' is the published scale and is not certified."
        ),
        cost=(
            "The fits of the design, known beforehand. Quality at ε = 1, n = 100, λ = κ = 1: Spearman correlation with "
            "the true values 0.25 on Adult, 0.18 on breast cancer, 0.09 on Gaussians."
        ),
        not_for=(
            "Most settings: values and noise shrink with n alike, so more data does not help. Use "
            "private-tknn-shapley, which keeps its quality at ε = 0.1."
        ),
        reference=f"{_LAYERED}. Certified noise instead of the published one: see the errata.",
        functions=("private_layered_shapley", "plan_private_layered"),
    ),
    Method(
        key="ledger",
        title="The ledger",
        question="How much of the privacy budget is spent, on what, and may there be one more release?",
        idea=(
            "One durable file holds a budget and every private release made from a data set: mechanism, parameters, "
            "neighbouring relation, audience, cost. A release asks before any noise is drawn; in one transaction all "
            "costs are composed with the new one and it is written down, or refused. The same question about the same "
            "data is answered again from the file, at no cost."
        ),
        formula="refuse unless ε(all costs so far + the new one; δ of the budget) ≤ ε of the budget",
        guarantee=(
            "The composition of all releases stays within (ε, δ) for the ledger's neighbouring relation. Neither "
            "concurrent processes nor a crash can overspend it; a crash between asking and releasing leaves the budget "
            "spent and nothing released."
        ),
        cost="A composition of privacy-loss distributions a release; some milliseconds a query in a disclosure game.",
        not_for=(
            "Releases made outside it: it knows only what it was asked. Two ledgers for the same people add up, and "
            "neither sees that. Keep the file like the data itself."
        ),
        reference="Dwork & Roth, The Algorithmic Foundations of Differential Privacy, 2014, for composition.",
        functions=("Ledger",),
    ),
    Method(
        key="audit",
        title="Auditing a mechanism",
        question="Is a mechanism as private as it claims?",
        idea=(
            "A distinguishing game is played many times on a worst pair of neighbouring data sets, through the public "
            "function. How often a guesser is right bounds ε from below. If the bound exceeds the claim, the claim is "
            "refuted. Compared with the whole curve of the claimed noise, much smaller faults show."
        ),
        formula=(
            "ε ≥ log((TPR_low − δ)/FPR_high), rates bounded by Clopper and Pearson; and with the errors exchanged\n"
            "noise_bound: rates against the curve δ(ε) of the noise claimed"
        ),
        guarantee=(
            "With the stated confidence (0.999) no honest mechanism is refuted and the bounds hold. A mechanism that "
            "is not refuted is not proven: an audit can only find faults."
        ),
        cost="Thousands of releases of a small data set.",
        not_for=(
            "Small faults at a small ε: at ε = 1, twenty thousand trials see half the noise, not 70% of it. Audit at a "
            "larger ε."
        ),
        reference=(
            "Nasr et al., Tight Auditing of Differentially Private Machine Learning, 2023. Steinke, Nasr & Jagielski, "
            "Privacy Auditing with One (1) Training Run, 2023."
        ),
        functions=("audit",),
    ),
    Method(
        key="price",
        title="Prices, and the cheapest cover",
        question="What should records cost, which would a consumer buy, and who is paid?",
        idea=(
            "A record costs its value and a privacy cost that grows with it. The consumer buys the cheapest set that "
            "is worth enough. Below θ = 1 the most valuable records are the best bargain, above it the least valuable, "
            "so that more owners are paid; at θ = 1, or without a privacy cost, every unit of value costs the same and "
            "no order follows. The owner's choice of θ and γ is searched."
        ),
        formula=(
            "p_i = φ_i + γ·φ_i^θ, for φ_i > 0;  a unit of value costs p/φ = 1 + γ·φ^(θ−1)\n"
            "buy: min Σ p_i x_i subject to Σ φ_i x_i ≥ target, x_i in {0, 1}\n"
            "owner: max over θ, γ of that minimum, within the consumer's budget"
        ),
        guarantee=(
            "The cover is exact with proven=True; where there are too many states, the best one found comes with the "
            "bound of the relaxation, and says so."
        ),
        cost="Measured: the cheapest cover of 500 records, proven optimal, in 24 ms.",
        not_for=(
            "Private values: they are each for its owner and not for a price list; the function refuses them. Records "
            "without a positive value are not for sale."
        ),
        reference=(
            f"{_THESIS}, chapter 3 (corrected at θ = 1). Pisinger, A minimal algorithm for the 0-1 knapsack problem, "
            "1997."
        ),
        functions=("price", "search_prices"),
    ),
    Method(
        key="disclosure-game",
        title="The disclosure game",
        question="What is data worth when it is revealed bit by bit, and whom does that cost how much privacy?",
        idea=(
            "The owner answers each query of a record with a noisy copy, at most T_max times a record. The consumer "
            "averages copies into centres, trains k-NN on them, and chooses what to query next: at random, by Shapley "
            "values of the centres, or by a bandit. Games with a seed are rehearsals; for real, every query is paid "
            "for in the ledger. The owner's ε and T_max are searched by rehearsing all pairings."
        ),
        formula=(
            "copy: x_j + Laplace(Δ_j/ε_j) in each feature j;  budget of a record B_max = T_max · ε\n"
            "bandit: query the highest Q + c·√(1/(N + 10⁻⁶))·(share of its budget left)\n"
            "equilibrium: max over (ε, T_max) of min over c of the budget to the target"
        ),
        guarantee=(
            "Pure differential privacy (δ = 0) of features under replace-features (labels are given away): a query "
            "costs Σ_j ε_j, a record up to T_max times that; 1,024 features at ε = 1 cost 1,024 a query. Certified "
            "only with public bounds, a target named beforehand, and no seed. Audience: public for real, nobody for "
            "a rehearsal."
        ),
        cost=(
            "Measured: 0.36 ms a step for 8,000 records of 1,024 features and 1,000 validation points, 684 times "
            "faster than evaluating anew; for real a noisy copy of 1,024 numbers takes 25 ms."
        ),
        not_for=(
            "Protection at these numbers in the sense of differential privacy: ε per record is large; look at what "
            "leaks (disclosure-leakage). Rehearsals protect nobody and must not be given away."
        ),
        reference=f"{_THESIS}, chapter 3, algorithm 2.",
        functions=("disclosure_game", "search_equilibrium"),
    ),
    Method(
        key="disclosure-leakage",
        title="What disclosure leaks",
        question="How much less do noisy copies give away than the records themselves?",
        idea=(
            "LiRA attacks a k-NN of the records, and one of the centres that the consumer has. Where the model holds a "
            "noisy centre, a record is no longer its own nearest neighbour. An outsider makes shadow models of copies "
            "of their own; an insider knows the centres, as the consumer does."
        ),
        formula="AUC and true-positive rates of membership-attack (LiRA), before: records; after: centres",
        guarantee="Empirical: what this attack finds.",
        cost="Two membership attacks; on 1,400 film reviews the reproduction takes 7 s.",
        not_for=(
            "Safety from the consumer: redone, an insider has an AUC of 0.807 where the records themselves give 0.779; "
            "from the consumer nothing is hidden."
        ),
        reference=f"{_THESIS}, §3.4.3. {_LIRA}.",
        functions=("disclosure_leakage",),
    ),
)

METHODS: Mapping[str, Method] = MappingProxyType({method.key: method for method in _ALL})
"""All methods by key, in the order of the four questions: worth, leaks, found, released or traded."""
