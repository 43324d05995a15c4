# SPDX-License-Identifier: BSD-3-Clause
"""The explorer runs the programs of the corpus in all their orders."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import corpus

HERE = Path(__file__).parent

# Each run would compile anew.
NAMES = [program.__name__ for program, _ in corpus.PAIRS if "compiled_code" not in program.__name__]
BOUND = 60

# Wrong programs that have one result all the same: what is read too early or written too late is equal.
SAVED = {
    "a_copy_to_the_device_is_dropped", "a_prefetcher_overwrites_the_batch_in_use",
    "a_temporary_of_an_expression", "an_index_is_read_too_early", "attention_reads_keys_too_early",
    "columns_of_one_matrix", "every_second_element", "gradients_are_unscaled_too_early",
    "reads_a_pinned_number_too_early", "reads_an_input_too_early", "reuses_a_staging_buffer",
    "rows_of_one_matrix", "two_readers_and_a_writer", "two_streams_train_one_batch_norm",
}  # fmt: skip

EXPLORE = """
import json, sys
sys.path.insert(0, sys.argv[1])
import corpus, torch._dynamo  # Once, and not in each run: optimizers need the latter.
from torch_openreg.explore import explore, shortest
program, way = f"{sys.argv[1]}/one_program.py", sys.argv[2]
for name in sys.argv[4:]:
    made = explore(program, [name, way], bound=int(sys.argv[3]), samples=5)
    results = [[code, out] for code, out in made.results]
    schedule, again = [], None
    if len(results) > 1:
        run = shortest(program, [name, way], made)
        schedule, again = list(run.order), list(run.result)
    print(json.dumps([len(made.runs), made.is_complete, results, schedule, again]), flush=True)
"""


def explored(way):
    done = subprocess.run(
        [sys.executable, "-c", EXPLORE, str(HERE), way, str(BOUND), *NAMES],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(NAMES, map(json.loads, done.stdout.splitlines())))


@pytest.fixture(scope="module")
def right():
    return explored("right")


@pytest.fixture(scope="module")
def wrong():
    return explored("wrong")


@pytest.mark.parametrize("name", NAMES)
def test_the_right_program_has_one_result_in_all_orders(right, name):
    _, is_complete, results, _, _ = right[name]
    assert [code for code, _ in results] == [0], results
    assert is_complete
    assert len(results) == 1


@pytest.mark.parametrize("name", NAMES)
def test_the_wrong_program_has_several_orders(wrong, name):
    orders, _, results, _, _ = wrong[name]
    assert orders > 1
    assert {code for code, _ in results} == {0}, results


def test_the_shortest_order_of_each_wrong_program_repeats_another_result(wrong):
    differing = {name: each for name, each in wrong.items() if len(each[2]) > 1}
    for name, (_, _, results, schedule, again) in differing.items():
        assert schedule, name
        assert again in results[1:], name
    assert set(wrong) - set(differing) == SAVED
