"""A cluster gives what a plain counter gives, in few tasks where the table is small."""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import cellrisk
from tests.counts import counter
from tests.counts.spark_cluster import CHEAP_JAVA, FAST, running_cluster

pytestmark = pytest.mark.slow
ROWS = 20_000
MOST_TASKS = 60
"""Spark's own setting, 200 parts for each shuffle, takes more than 1,000."""
PATIENCE = 400.0
CHILD = """
import pickle, sys, threading
from tests.counts import counter
from cellrisk.counts.counting import tabulate
from cellrisk.counts.spark import own_session

master, folder = sys.argv[1:]
with open(folder + "/asked", "rb") as stream:
    asked = pickle.load(stream)
with own_session(master) as session:
    tracker = session.sparkContext.statusTracker()

    def count_tasks():
        group = f"cellrisk {threading.get_ident()}"
        stages = {stage for job in tracker.getJobIdsForGroup(group) for stage in tracker.getJobInfo(job).stageIds}
        return sum(info.numCompletedTasks for info in map(tracker.getStageInfo, stages) if info is not None)

    found = counter.tally(tabulate(folder + "/a.parquet", engine="spark", **asked))
    tasks = count_tasks()
    executors = session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    answer = found, tasks, executors, session.conf.get("spark.sql.shuffle.partitions")
with open(folder + "/answer", "wb") as stream:
    pickle.dump(answer, stream)
"""


def make_case() -> counter.Case:
    """Two sensitive columns, one of them with too many levels for a count each."""
    chance = random.Random(14)
    pools = {
        "region": (pa.string(), [*(f"region {place}" for place in range(9)), "Köln", "köln", "", None]),
        "age": (pa.int16(), list(range(90))),
        "height": (pa.float64(), [1.5, 1.75, 0.0, -0.0, float("nan"), None]),
        "job": (pa.string(), ["cook", "smith", "clerk", None]),
        "illness": (pa.string(), [f"code {place}" for place in range(50)]),
    }
    columns = {name: pa.array(chance.choices(pool, k=ROWS), kind) for name, (kind, pool) in pools.items()}
    options = {"missing": "category", "bins": {"age": 18}}
    return counter.Case(pa.table(columns), ["region", "age", "height"], ["job", "illness"], options)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # Spark leaves the closing of sockets to Python
def test_a_small_table_on_a_cluster(tmp_path: Path) -> None:
    """In a process of its own, as a process has one Spark only. One that hangs is ended and fails."""
    case = make_case()
    counter.write_parquet(case.table, tmp_path / "a.parquet")
    (tmp_path / "asked").write_bytes(pickle.dumps(case.asked))
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.executor.extraJavaOptions": f"'{CHEAP_JAVA}'",
        "spark.executor.memory": "512m",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # both workers are there before the first task
        **{name: value for name, value in FAST.items() if name != "spark.sql.shuffle.partitions"},
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    environment = {name: value for name, value in os.environ.items() if "SPARK" not in name} | {
        "JAVA_TOOL_OPTIONS": CHEAP_JAVA,
        "PYSPARK_SUBMIT_ARGS": " ".join([*options, "pyspark-shell"]),
        "PYTHONPATH": os.pathsep.join([str(Path(cellrisk.__file__).parents[1]), str(Path(__file__).parents[2])]),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(tmp_path),
    }
    with running_cluster(tmp_path) as cluster:
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD, cluster.master, str(tmp_path)], env=environment, start_new_session=True
        )
        try:
            assert process.wait(PATIENCE) == 0
        except subprocess.TimeoutExpired:
            pytest.fail("the cluster stopped answering: it was ended")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    found, tasks, executors, partitions = pickle.loads((tmp_path / "answer").read_bytes())
    assert found == counter.count(case)
    assert executors == 2
    assert 0 < tasks <= MOST_TASKS
    assert partitions == "200"
