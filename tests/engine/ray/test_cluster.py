"""What can be said of a cluster without one: options, addresses, room, and lines for what is wrong."""

import os
import socket
import sys
from contextlib import nullcontext

import pytest

from testifai.engine.ray.actor_pool import ActorRequest
from testifai.engine.ray.cluster import Cluster, _no_stderr, _reason
from testifai.errors import InputError
from testifai.spec.options import ScanOptions


@pytest.mark.parametrize(
    ("workers", "executor"),
    [
        ("ray", {"use": "ray"}),
        ("ray:auto", {"use": "ray", "address": "auto"}),
        ("ray:10.0.0.1:6379", {"use": "ray", "address": "10.0.0.1:6379"}),
        ("ray://head:10001", {"use": "ray", "address": "ray://head:10001"}),
    ],
)
def test_workers_name_a_cluster(workers, executor):
    assert ScanOptions.of({"workers": workers}).placed() == (executor, None)


def test_workers_that_are_a_number_stay_one():
    assert ScanOptions.of({"workers": 3}).placed() == (None, 3)
    assert ScanOptions.of({"workers": 3, "executor": {"use": "ray"}}).placed() == ({"use": "ray"}, 3)


@pytest.mark.parametrize("workers", ["dask", "rays", "2", ""])
def test_other_words_are_refused(workers):
    with pytest.raises(InputError, match=r"workers: must be a number, 'ray', 'ray:auto', .* got"):
        ScanOptions.of({"workers": workers})


def test_two_words_for_an_executor_are_one_too_many():
    with pytest.raises(InputError, match="workers: 'ray' names an executor, and so does executor"):
        ScanOptions.of({"workers": "ray", "executor": "local"}).placed()


def test_without_ray_a_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray.exceptions", None)
    with pytest.raises(InputError, match=r"ray is not installed; install it with: pip install 'testifai\[ray\]'"):
        Cluster("auto")


def test_where_nobody_listens_a_line_says_so_at_once():
    pytest.importorskip("ray")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(InputError, match=f"no Ray cluster at 127.0.0.1:{port} .*refused.*ray start --head"):
            Cluster(f"127.0.0.1:{port}")


@pytest.mark.parametrize("address", ["head", "ray://head", "head:port", ":6379"])
def test_what_is_no_address_is_refused(address):
    pytest.importorskip("ray")
    with pytest.raises(InputError, match="is not an address of Ray; HOST:6379, ray://HOST:10001 and auto are"):
        Cluster(address)


@pytest.mark.parametrize(
    ("answers", "heard"),
    [
        (["Starting Ray client server failed. See x.err", "psutil.ZombieProcess: PID still exists", None], None),
        (["Starting Ray client server failed. See x.err"] * 4, "Starting Ray client server failed"),
        (["Version mismatch: 2.9"], "Version mismatch"),
    ],
)
def test_a_client_whose_server_died_on_starting_asks_again(monkeypatch, answers, heard):
    pytest.importorskip("ray")
    asked = []

    def init(self, address):
        asked.append(address)
        answer = answers[len(asked) - 1]
        if answer is not None:
            raise RuntimeError(answer)

    monkeypatch.setattr(Cluster, "_init", init)
    with socket.create_server(("127.0.0.1", 0)) as door:
        address = f"ray://127.0.0.1:{door.getsockname()[1]}"
        with nullcontext() if heard is None else pytest.raises(InputError, match=heard):
            Cluster(address)
    assert asked == [address] * min(3, len(answers))


def test_of_a_servers_traceback_the_end_is_told():
    told = "Initialization failure from server:\nTraceback (most recent call last):\n  File x\nOSError: no port left\n"
    assert _reason(ConnectionAbortedError(told)) == "OSError: no port left"
    assert _reason(ValueError("one\ntwo")) == "one"


def test_there_are_as_many_actors_as_fit():
    assert ActorRequest(None).fitting({"CPU": 8.0}) == 8
    assert ActorRequest(None, cpus=2).fitting({"CPU": 7.0}) == 3
    assert ActorRequest(None, cpus=0.5, gpus=0.25).fitting({"CPU": 64.0, "GPU": 2.0}) == 8
    assert ActorRequest(3).fitting({"CPU": 8.0}) == 3


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (ActorRequest(None, cpus=4), "has 2 CPU, too little for an actor with 4 CPU"),
        (ActorRequest(3), "has 2 CPU, too little for 3 actors, each with 1 CPU"),
        (ActorRequest(None, gpus=1), "has 2 CPU and 0 GPU, too little for an actor with 1 CPU and 1 GPU"),
    ],
)
def test_too_little_room_is_one_line(wanted, said):
    with pytest.raises(InputError, match=said):
        wanted.fitting({"CPU": 2.0})


def test_what_is_said_below_python_is_dropped_for_a_while(capfd):
    with _no_stderr():
        os.write(2, b"noise")
    os.write(2, b"news")
    assert capfd.readouterr().err == "news"
