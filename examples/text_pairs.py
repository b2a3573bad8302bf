# %% [markdown]
# # Pairs of texts: do two questions ask the same?
#
# People type quickly, spell wrongly and say the same in other words. Here a classifier decides whether two questions
# are duplicates, and only the first of each pair, the new one, is perturbed: the second comes from a tidy archive.

# %%
import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

import testifai as ta
from testifai.perturb.text import edits

# %% [markdown]
# ## Made-up questions
#
# Each row asks one thing in several ways. Pairs from one row about one subject are duplicates; pairs about different
# things, or different subjects, are not. Subjects of the test are not those of the training.

# %%
WAYS = [
    ["How do I learn {}?", "What is the best way to learn {}?", "I would like to learn {}, where do I begin?"],
    ["Is {} difficult?", "How hard is {} for a beginner?", "Isn't it very hard to study {}?"],
    ["Who invented {}?", "Who was the first to think of {}?", "What is the name of the inventor of {}?"],
    ["Why do people like {}?", "What is so good about {}?", "Why is {} popular with so many people?"],
    ["How much does {} cost?", "What do I have to pay for {}?", "Isn't {} too expensive?"],
]
SUBJECTS = {
    "train": ["chess", "Spanish", "the violin", "origami", "algebra", "fencing", "pottery", "yoga", "radio", "cheese"],
    "test": ["sailing", "Latin", "the piano", "judo", "geometry", "knitting", "poker", "glass", "skiing", "perfume"],
}
Pair = tuple[str, str]


def pairs_about(subjects: Sequence[str]) -> tuple[list[Pair], NDArray[np.int64]]:
    """As many duplicates as other pairs."""
    asked = [
        (way, subject, text.format(subject)) for way, texts in enumerate(WAYS) for subject in subjects for text in texts
    ]
    same, other = [], []
    for (way, subject, first), (way_2, subject_2, second) in itertools.permutations(asked, 2):
        if (way, subject) == (way_2, subject_2):
            same.append((first, second))
        elif way == way_2 or subject == subject_2:
            other.append((first, second))
    chosen = np.random.default_rng(0).choice(len(other), len(same), replace=False)
    return [*same, *(other[place] for place in chosen)], np.repeat([1, 0], len(same))


pairs, labels = pairs_about(SUBJECTS["train"])
pairs_test, labels_test = pairs_about(SUBJECTS["test"])
print(f"{len(pairs_test)} pairs to test; a duplicate: {pairs_test[0]}")

# %% [markdown]
# ## The model
#
# Any function from a list of pairs to classes or scores. This one looks at how much the two texts differ in words and
# in runs of letters.

# %%
words = TfidfVectorizer(token_pattern=r"\w+").fit(itertools.chain(*pairs))
letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4)).fit(itertools.chain(*pairs, *pairs_test))


def features(batch: Sequence[Pair]) -> NDArray[np.float64]:
    """Which known words differ, and how alike the letters are."""
    first, second = ([pair[side] for pair in batch] for side in (0, 1))
    differ = abs(words.transform(first) - words.transform(second)).toarray()
    alike = letters.transform(first).multiply(letters.transform(second)).sum(axis=1)
    return np.hstack([differ, 4 * np.asarray(alike).reshape(-1, 1)])


classifier = LogisticRegression(C=30, max_iter=500).fit(features(pairs), labels)


def duplicates(batch: Sequence[Pair]) -> NDArray[np.float64]:
    """The probability of either class."""
    return np.asarray(classifier.predict_proba(features(batch)))


# %% [markdown]
# ## Before the scan: is there anything to edit?
#
# Severity s is s edits. Where texts have no place for an edit, an axis would look harmless for no reason.

# %%
print(edits("text.typo", [first for first, _ in pairs_test], 3))
print(f"an example: {ta.apply({'text.synonym': 1, 'text.typo': 2}, pairs_test[:1], side='first')[0][0]}")

# %% [markdown]
# Perturbations are applied in the order in which the axes are written: typing mistakes last, as in life.

# %%
data = ta.data.from_arrays(pairs_test, labels_test, side="first")
space = ta.Space({"fillers": ("text.filler", [0, 1, 3]), "synonyms": ("text.synonym", [0, 1, 2]), "typos": "text.typo"})
tomogram = ta.scan(duplicates, data, space, budget=8_000, quality="edit_similarity")
print(f"accuracy on clean pairs {tomogram.base:.3f}; {tomogram.inferences:,} inferences over {space.size} tests")

# %% [markdown]
# ## Questions, among plausible texts only
#
# Five typing mistakes and two synonyms in a short question may leave nothing that a person would recognise. With
# `quality >= 0.8` only tests count whose texts stay at least 80 % as they were; how many that leaves out is said.

# %%
for question in ("typos >= 1", "typos >= 1 and quality >= 0.8", "synonyms >= 1 and typos == 0 and fillers == 0"):
    answer = tomogram.query(question)
    left_out = f"; {answer.excluded.tests} left out" if answer.excluded else ""
    found = f"{answer.robustness:.3f} ({answer.low:.3f} … {answer.high:.3f}), {answer.tests} tests"
    print(f"{question:<46} {found}{left_out}")

# %%
(severities, estimate, low, high), *_ = tomogram.query("order >= 1").worst
told = ", ".join(f"{name} {severity}" for name, severity in zip(space.names, severities, strict=True))
print(f"worst test: {told}: {estimate:.3f} ({low:.3f} … {high:.3f})")
for label, kind in enumerate(("different questions", "duplicates")):
    answer = tomogram.query("typos >= 3", inputs=f"label == {label}")
    print(f"  {kind} with three typos or more: {answer.robustness:.3f} ({answer.low:.3f} … {answer.high:.3f})")

# %% [markdown]
# ## Next
#
# The same from a CSV file with columns question1, question2 and is_duplicate: `testifai init MODEL questions.csv`. A
# folder of Hugging Face and a sentence encoder are models as well.

# %%
print("next: correct spelling before the classifier (a function around it is a model too), and scan again")
