"""Threads of the operating system in which stores and functions work."""

import threading

import pytest

from awp_publish.stores.threads import ThreadsOfTheirOwn


@pytest.mark.parametrize("is_single", [False, True])
def test_functions_run_each_in_a_thread_or_all_in_the_same_one_in_order(is_single):
    threads = ThreadsOfTheirOwn(is_single=is_single)
    done: list[int] = []

    def work(number: int) -> threading.Thread:
        done.append(number)
        return threading.current_thread()

    futures = [threads.submit(work, number) for number in range(5)]
    ran_in = [future.result(timeout=60) for future in futures]
    assert threading.current_thread() not in ran_in
    assert len(set(ran_in)) == (1 if is_single else 5)
    assert sorted(done) == list(range(5))
    assert not is_single or done == sorted(done)


@pytest.mark.parametrize("is_single", [False, True])
def test_an_exception_of_a_function_is_its_result(is_single):
    threads = ThreadsOfTheirOwn(is_single=is_single)
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 / 0).result(timeout=60)
    assert threads.submit(lambda: "well").result(timeout=60) == "well"
