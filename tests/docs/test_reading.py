"""What the tests make of a page: which blocks run, which say why not, and what is no block that anybody could run."""

from __future__ import annotations

import sys

import pytest
from tests.docs import blocks, count
from tests.docs.mentions import unknown_in
from tests.docs.running import StepFailed, failure_of, run_page, runs

SAME = """python -c 'import testifai as ta; assert ta.__file__ == open("p").read()'"""


@pytest.fixture
def page(tmp_path):
    """Reads a text as a page of the documentation."""

    def read(text):
        path = tmp_path / "page.md"
        path.write_text(text.replace("~~~", "```"), encoding="utf-8")
        return blocks.read(path)

    return read


def told(page):
    return [(step.line, step.kind, step.text, step.reason) for step in page.steps]


def test_commands_are_lines_and_may_be_continued(page):
    found = page("# A\n\n~~~bash\n# said first\nls -l\n\necho a \\\n  b  # exit code 3\n~~~\n")
    assert told(found) == [(5, "command", "ls -l", None), (7, "command", "echo a \\\n  b  # exit code 3", None)]
    assert [step.exit_code for step in found.steps] == [0, 3]


def test_a_reason_is_for_the_block_after_it(page):
    found = page("*Not run by the tests: needs a GPU.*\n\n~~~python\na\n~~~\n\ntext\n\n~~~python\nb\n~~~\n")
    assert told(found) == [(4, "python", "a", "needs a GPU"), (10, "python", "b", None)]
    separated = page("*Not run by the tests: needs a GPU.*\n\ntext\n\n~~~python\na\n~~~\n")
    assert told(separated) == [(6, "python", "a", None)]


def test_a_reason_under_a_heading_ends_with_its_section(page):
    found = page(
        "# A\n\n## B\n\n*Not run by the tests (this section): needs a cluster.*\n\n~~~python\na\n~~~\n\n"
        "### C\n\nSay `testifai show`.\n\n~~~python\nb\n~~~\n\n## D\n\n~~~python\nc\n~~~\n"
    )
    assert [(step.text, step.reason) for step in found.steps] == [
        ("a", "needs a cluster"),
        ("b", "needs a cluster"),
        ("c", None),
    ]
    assert [(step.text, step.reason) for step in found.mentions] == [("testifai show", "needs a cluster")]


def test_a_block_may_wait_for_a_package(page):
    text = "*Run by the tests where {} is installed.*\n\n~~~python\na\n~~~\n"
    assert runs(page(text.format("numpy")).steps[0])
    (step,) = page(text.format("no_such_package")).steps
    assert not runs(step)
    assert "0 blocks and commands executed, 1 not (no_such_package is not installed 1)" in count.summary(
        [page(text.format("no_such_package"))]
    )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("~~~\nls\n~~~\n", "line 2: a block with the language ''"),
        ("~~~sh\nls\n~~~\n", "'sh'"),
        ("text\n\n    indented\n", "line 3: a block with the language 'by indentation'"),
    ],
)
def test_what_is_no_known_block_is_named(page, text, named):
    (problem,) = page(text).problems
    assert named in problem


def test_output_lists_and_indented_blocks(page):
    found = page("~~~text\n$ ls\n~~~\n\n- a list\n\n    more of it\n\n    ~~~python\n    if a:\n        b\n    ~~~\n")
    assert not found.problems
    assert told(found) == [(10, "python", "if a:\n    b", None)]


def test_the_count_names_reasons_in_short(page):
    found = page(
        "# A\n*Not run by the tests: needs a GPU, any.*\n~~~bash\na\nb\n~~~\n~~~toml\n[scan]\n~~~\n"
        "`make test`, `pip install 'testifai[app]'`"
    )
    assert count.summary([found]) == (
        "docs: 1 blocks and commands executed, 2 not (GPU 2); 2 more commands are named in sentences, and exist, "
        "0 where the page says why they are not run"
    )


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("testifai show run.db --by severity", None),
        ("testifai shwo run.db", "there is no command 'shwo'"),
        ("testifai show run.db --colour", "testifai show has no --colour"),
        ("python benchmarks/papers.py --only sweeps", None),
        ("python benchmarks/papers.py --sections sweeps", "benchmarks/papers.py has no --sections"),
        ("python benchmarks/paper.py", "there is no benchmarks/paper.py"),
        ("make tea", "the Makefile has no tea"),
        ("pip install 'testifai[app,tea]'", "there is no extra tea"),
    ],
)
def test_commands_in_sentences_are_looked_up(command, said):
    assert unknown_in(command) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("~~~python\nx = 1\n~~~\n\n~~~python\n\nassert x == 2\n~~~\n", "page.md:6: a block raised AssertionError"),
        (
            '~~~python title="own.py"\nx = 1\n~~~\n~~~python\nfrom own import x\nimport testifai as ta\n'
            "open('p', 'w').write(ta.__file__)\n~~~\n~~~bash\ntest -f own.py\n" + SAME + "\n~~~\n",
            None,
        ),
    ],
)
def test_a_page_is_run_in_a_folder_of_its_own(page, text, said, tmp_path):
    failure = failure_of(page(text), tmp_path)
    assert failure is None if said is None else said in failure


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("~~~bash\nfalse  # exit code 1\npython -c 'exit(3)'\n~~~\n", "ended with exit code 3, not 0"),
        ("~~~toml\n[scan]\nbudgte = 3\n~~~\n", "page.md:2: no part of a spec: "),
        ("<!-- needs: nonsense -->\n", "page.md:1: nothing in tests/docs/material*.py makes 'nonsense'"),
    ],
)
def test_a_step_that_fails_says_where(page, text, said, tmp_path, monkeypatch):
    """In this process, which is given back as it was."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    with pytest.raises(StepFailed) as failed:
        run_page(page(text), tmp_path)
    assert said in str(failed.value)
