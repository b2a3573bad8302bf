import numpy as np

from testifai.engine.plan import Node, Work, prefix_tree
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes
from testifai.space import Space


def plus(name):
    return Perturbation(name, lambda batch, by, rng: batch + by, [0, 1, 2, 3])


SPACE = Space({"a": plus("a"), "b": plus("b"), "c": plus("c")})


def walk(node: Node, path=()):
    yield path, node
    for step, child in node.children.items():
        yield from walk(child, (*path, step))


def test_every_configuration_stands_at_the_end_of_its_steps():
    ids = SPACE.ids_up_to(None)
    found = {path: node.tests for path, node in walk(prefix_tree(SPACE, ids))}
    assert len(found) == SPACE.size
    for path, tests in found.items():
        assert [SPACE.steps(SPACE.configuration(int(ids[row]))) for row in tests] == [path]


def test_a_prefix_is_made_once():
    nodes = sum(1 for _ in walk(prefix_tree(SPACE, SPACE.ids_up_to(None)))) - 1
    # 3 for a, 4 * 3 for b, 16 * 3 for c: one application per non-clean test instead of one per step
    assert nodes == 63


def test_orders_of_application_are_paths_of_their_own():
    space = Space({"a": plus("a"), "b": plus("b")}, order_sensitive=True)
    paths = {path for path, node in walk(prefix_tree(space, range(space.size))) if node.tests}
    assert len(paths) == space.size
    assert ((0, 1), (1, 2)) in paths
    assert ((1, 2), (0, 1)) in paths


def test_missing_is_wanted_less_measured():
    outcomes = Outcomes(10)
    outcomes.record(5, np.array([1, 2]), np.array([True, False]))
    shared = Work(np.array([0, 5]), np.array([1, 3]))
    assert shared.union().tolist() == [1, 3]
    assert shared.missing(outcomes, np.array([1, 3])).tolist() == [[True, True], [False, True]]
    own = Work(np.array([0, 5]), [np.array([4]), np.array([2, 9])])
    assert own.union().tolist() == [2, 4, 9]
    assert own.missing(outcomes, np.array([2, 4, 9])).tolist() == [[False, True, False], [False, False, True]]


def test_comparing_oracles_get_the_clean_test_on_every_input():
    own = Work(np.array([5, 0]), [np.array([2, 9]), np.array([4])]).with_clean()
    assert own.configurations.tolist() == [0, 5]
    assert [places.tolist() for places in own.places] == [[2, 4, 9], [2, 9]]
    shared = Work(np.array([0, 5]), np.array([1, 3]))
    assert shared.with_clean() is shared


def test_work_among_more_configurations_is_the_same_work():
    work = Work(np.array([7, 2]), [np.array([3, 1]), np.array([0])])
    among = work.among(np.array([1, 2, 7]))
    assert among.configurations.tolist() == [1, 2, 7]
    assert [places.tolist() for places in among.places] == [[], [0], [3, 1]]
    shared = Work(np.array([7, 2]), np.arange(3))
    assert shared.among(np.array([2, 7])).places is shared.places
    assert [len(places) for places in shared.among(np.array([1, 2, 7])).places] == [0, 3, 3]
    twice = Work(np.array([4, 4]), [np.array([1]), np.array([0, 1])])
    assert twice.among(np.array([4])).places[0].tolist() == [0, 1]
