"""Make the table of synonyms from WordNet 3.0's database files, as Debian's package wordnet-base has them.

python benchmarks/make_synonyms.py /usr/share/wordnet src/testifai/perturb/assets/synonyms.txt.gz

A line of the table is: word, part of speech (n, v, a, r), synonyms; the fields are separated by tabs, the synonyms by
commas. Only words of one piece in small letters are kept, each with the part of speech that it mostly has in the
texts which WordNet's makers tagged, and with the synonyms of its common senses: the first one, and those that make
up at least a quarter of its tagged uses. Words that are mostly grammar (pronouns, auxiliaries, prepositions) are left
out: WordNet knows "can" as a tin and "in" as an inch.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
# The digits of a sense key; 5 is a satellite adjective.
SENSE_TYPES = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
COMMON = 0.25
WORD = re.compile(r"[a-z]{3,}")
GRAMMAR = """
    about above across after again against all almost along already also although always am among and another any
    anybody anyone anything are around ask away back be became because become been before began begin behind being
    below beside besides between beyond both but came can come comes coming could did does doing done down during
    each either else enough etc even ever every everybody everyone everything except far few first for from further
    get gets getting give given gives go goes going gone got had has have having hence her here hers herself him
    himself his how however into its itself just keep last least less let like made make makes making many may might
    mine more most much must myself near neither never next nobody none nor not nothing now off often one ones only
    onto other others our ours ourselves out over own past per put quite rather said same second see seem seems set
    several shall she should since some somebody someone something soon still such take takes taking taken than that
    the their theirs them themselves then there these they thing things third this those though through thus till
    too took toward towards under until upon use used uses using very was way well went were what whatever when
    whenever where whether which while who whoever whole whom whose why will with within without would yes yet you
    your yours yourself yourselves two three four five six seven eight nine ten hundred thousand million billion
"""


def rows(path: Path) -> Iterator[list[str]]:
    """The lines of a database file without its licence, split at blanks."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("  "):
            yield line.split()


def uses(folder: Path) -> dict[tuple[str, str], Counter[int]]:
    """How often each sense of a word with its part of speech was tagged."""
    counts: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for key, sense, count in rows(folder / "cntlist.rev"):
        word, _, rest = key.partition("%")
        counts[word, SENSE_TYPES[rest[0]]][int(sense)] += int(count)
    return counts


def sets_of_synonyms(path: Path) -> dict[str, list[str]]:
    """The words of each set, by its offset. Marks of an adjective's place, as in "ill(p)", are no part of the word."""
    found = {}
    for fields in rows(path):
        words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
        found[fields[0]] = [re.sub(r"\(.*\)", "", word) for word in words]
    return found


def senses(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Each word with the offsets of its senses, the most common first."""
    for fields in rows(path):
        yield fields[0], fields[-int(fields[2]) :]


def table(folder: Path) -> dict[str, tuple[str, list[str]]]:
    """Each word with its part of speech and synonyms."""
    counts = uses(folder)
    best: dict[str, tuple[int, str, list[str]]] = {}
    for part, letter in PARTS.items():
        sets = sets_of_synonyms(folder / f"data.{part}")
        for word, offsets in senses(folder / f"index.{part}"):
            tagged = counts.get((word, letter), Counter())
            total = sum(tagged.values())
            common = [
                o for number, o in enumerate(offsets, 1) if number == 1 or tagged[number] >= COMMON * max(total, 1)
            ]
            synonyms = dict.fromkeys(s for o in common for s in sets[o] if s != word and WORD.fullmatch(s))
            # Of equals the earlier part of speech stays: nouns before verbs.
            if word not in best or total > best[word][0]:
                best[word] = (total, letter, list(synonyms))
    grammar = set(GRAMMAR.split())
    kept = (word for word in sorted(best) if WORD.fullmatch(word) and word not in grammar)
    return {word: best[word][1:] for word in kept if best[word][2]}


def main() -> None:
    folder, target = map(Path, sys.argv[1:])
    made = table(folder)
    lines = "".join(f"{word}\t{part}\t{','.join(synonyms)}\n" for word, (part, synonyms) in made.items())
    # No time stamp: the same database gives the same file.
    target.write_bytes(gzip.compress(lines.encode("ascii"), 9, mtime=0))
    print(f"{len(made)} words, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
