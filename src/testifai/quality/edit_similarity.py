"""Edit similarity: how few characters must be inserted, deleted or replaced to undo a perturbation.

Levenshtein's distance divided by the length of the longer text, subtracted from 1.
"""

from __future__ import annotations

from testifai.errors import InputError
from testifai.models.base import Model
from testifai.quality.per_input import PerInputReference, sample_of
from testifai.quality.texts import Change, TextMeasure, sides_of
from testifai.support.batches import Batch

# Where all of so many characters differ, a text takes about four seconds; the time grows with the square.
LONGEST = 100_000
# Texts at least this long are first tried with few edits, which does not look at most of their characters.
_LONG = 2000
# Edits tried for each character of a text: more would take longer than the general way.
_FEW = 0.005


class EditSimilarity(TextMeasure):
    """1 where no character changed, 0 where every one did."""

    name = "edit_similarity"

    def scores(self, changes: list[Change]) -> list[float]:
        return [edit_similarity(*change) for change in changes]

    def reference(self, clean: Batch, model: Model | None, *, seed: int) -> PerInputReference:
        _, texts = sample_of(self.name, clean, self.sample, seed)
        longest = max(len(text) for side in sides_of(self.name, texts, self.side) for text in side)
        if longest > LONGEST:
            raise InputError(
                f"quality: edit_similarity takes texts of up to {LONGEST:,} characters; one has {longest:,} (try bleu)"
            )
        return super().reference(clean, model, seed=seed)


def edit_similarity(clean: str, perturbed: str) -> float:
    """1 - distance / length of the longer text.

    >>> edit_similarity("kitten", "sitting").__round__(3)
    0.571
    """
    longer = max(len(clean), len(perturbed))
    return 1 - distance(clean, perturbed) / longer if longer else 1.0


def distance(first: str, second: str) -> int:
    """Levenshtein's distance in characters.

    >>> distance("kitten", "sitting")
    3
    """
    first, second = _without_common_ends(first, second)
    if not first or not second:
        return len(first) + len(second)
    if min(len(first), len(second)) >= _LONG:
        found = few_edits(first, second, most=int(_FEW * max(len(first), len(second))))
        if found is not None:
            return found
    return any_edits(first, second)


def any_edits(first: str, second: str) -> int:
    """The distance of two texts that are not empty.

    A whole column of the table of distances is one integer (Myers, "A fast bit-vector algorithm for approximate string
    matching based on dynamic programming", Journal of the ACM 46, 1999; Hyyrö, 2003, for distances of whole strings).
    """
    places: dict[str, int] = {}
    for place, character in enumerate(first):
        places[character] = places.get(character, 0) | 1 << place
    # Bit i of `up` (`down`): one row further down the column, the distance is 1 more (1 less).
    every = (1 << len(first)) - 1
    last, up, down, result = 1 << (len(first) - 1), every, 0, len(first)
    for character in second:
        equal = places.get(character, 0)
        diagonal = (((equal & up) + up) ^ up) | equal | down
        # The same from this column to the next.
        right_up, right_down = down | ~(diagonal | up) & every, up & diagonal
        result += bool(right_up & last) - bool(right_down & last)
        right_up = right_up << 1 | 1
        up = (right_down << 1 | ~(diagonal | right_up)) & every
        down = diagonal & right_up
    return result


def few_edits(first: str, second: str, *, most: int) -> int | None:
    """The distance if it is at most so many, else None.

    For each number of edits, how far down each diagonal of the table they lead (Ukkonen, "Algorithms for approximate
    string matching", Information and Control 64, 1985).
    """
    goal = len(first) - len(second)
    reached = {0: _common(first, 0, second, 0)}
    for edits in range(most + 1):
        if reached.get(goal) == len(first):
            return edits
        further = {}
        for diagonal in range(-edits - 1, edits + 2):
            row = max(
                reached.get(diagonal, -2) + 1,  # replace a character
                reached.get(diagonal - 1, -2) + 1,  # leave out one of the first text
                reached.get(diagonal + 1, -2),  # or one of the second
            )
            row = min(row, len(first), len(second) + diagonal)
            if row >= max(0, diagonal):
                further[diagonal] = row + _common(first, row, second, row - diagonal)
        reached = further
    return None


def _common(first: str, start: int, second: str, begin: int) -> int:
    """How many characters are the same from these places on: by ever larger pieces, then by halves of the last."""
    most = min(len(first) - start, len(second) - begin)
    same, size = 0, 16

    def equal(low: int, high: int) -> bool:
        return first[start + low : start + high] == second[begin + low : begin + high]

    while same < most and equal(same, min(same + size, most)):
        same, size = min(same + size, most), 2 * size
    end = min(same + size, most)
    while same < end:
        middle = (same + end + 1) // 2
        if equal(same, middle):
            same = middle
        else:
            end = middle - 1
    return same


def _without_common_ends(first: str, second: str) -> tuple[str, str]:
    """What is left between what both begin and end with."""
    start, most = 0, min(len(first), len(second))
    while start < most and first[start] == second[start]:
        start += 1
    end = 0
    while end < most - start and first[-1 - end] == second[-1 - end]:
        end += 1
    return first[start : len(first) - end], second[start : len(second) - end]
