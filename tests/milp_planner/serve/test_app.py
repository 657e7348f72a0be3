"""The service from outside: jobs, their events and files; what is refused, and how."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the extra serve is not installed")
pytest.importorskip("starlette", reason="the extra serve is not installed")

from milp_planner import read_plan, verify
from milp_planner.serve.limits import Limits
from tests.corpus import mistakes
from tests.milp_planner.serve.served import CLUSTER, JOB, LONG, MODEL, Answer, Client, service

ASKED = {**JOB, "gap": 0.5}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A service that solves one job at a time and lets two wait."""
    with service(Limits(waiting=2, body=200_000, seconds=60, grace=20)) as found:
        yield found


@pytest.fixture(scope="module")
def planned(client: Client) -> Answer:
    """The answer to a job that has ended since."""
    made = client.post(ASKED)
    client.until(made.json["id"], "done")
    return made


def test_a_job_is_planned_and_its_files_are_there(
    client: Client, planned: Answer, tmp_path: Path
) -> None:
    """Events come in order, plan.json verifies, and picture and report are drawn."""
    id = planned.json["id"]
    assert planned.code == 202 and planned.headers["location"] == f"/v1/jobs/{id}"
    events = client.events(id)
    kinds = [event["event"] for event in events]
    assert kinds[:2] == ["queued", "running"] and kinds[-1] == "done"
    assert set(kinds[2:-1]) <= {"progress"}
    assert all({"certified_bound", "certified_gap"} <= event.keys() for event in events[2:-1])
    job = client.get(f"/v1/jobs/{id}").json
    assert job["state"] == "done" and job["result"]["objective"] >= job["result"]["bound"]
    assert job["peak_bytes"] > 2**20
    file = tmp_path / "plan.json"
    file.write_text(client.get(f"/v1/jobs/{id}/plan.json").text)
    plan = read_plan(file)
    assert verify(plan).ok and plan.outcome.objective == job["result"]["objective"]
    picture = client.get(f"/v1/jobs/{id}/picture.json").json
    drawings = [drawing for section in picture["sections"] for drawing in section["drawings"]]
    assert picture["strip"] and drawings
    assert all(drawing["svg"].startswith("<svg") for drawing in drawings)
    report = client.get(f"/v1/jobs/{id}/report.html")
    assert report.headers["content-security-policy"].startswith("sandbox allow-scripts;")
    assert "small on two" in report.text
    assert json.loads(client.get(f"/v1/jobs/{id}/torchrec.txt").text)
    assert client.get(f"/v1/jobs/{id}/../../etc/passwd").code == 404


def test_the_same_question_is_answered_once(client: Client, planned: Answer) -> None:
    """The second job returns the first one's plan.json to the byte, and metrics count it; other
    memory is another question."""
    before = _cached(client)
    asked = (ASKED, {**ASKED, "hbm": 12 * 2**30})
    jobs = [planned.json["id"], *(client.post(each).json["id"] for each in asked)]
    results = [client.until(id, "done")["result"] for id in jobs]
    assert [result["cached"] for result in results] == [False, True, False]
    assert results[0] | {"cached": True} == results[1] and _cached(client) == before + 1
    plans = [client.get(f"/v1/jobs/{id}/plan.json").text for id in jobs]
    assert plans[0] == plans[1] != plans[2]


def test_plans_outlive_the_service_in_a_folder(tmp_path: Path) -> None:
    """A second service with the same folder knows the answer."""
    for known in (False, True):
        with service(cache=tmp_path) as served:
            id = served.post(ASKED).json["id"]
            assert served.until(id, "done")["result"]["cached"] is known


def _cached(client: Client) -> int:
    text = client.get("/metrics").text
    return int(text.partition("\nmilp_planner_jobs_cached_total ")[2].partition("\n")[0])


def test_what_if_moves_few_tables(client: Client, planned: Answer) -> None:
    """A job may start from another job's plan with less HBM; no more tables move than allowed."""
    before = planned.json["id"]
    changed = {**JOB, "hbm": 12 * 2**30, "start": before, "max_moved": 0}
    after = client.post(changed).json["id"]
    assert client.until(after, "done")["result"]["status"] in ("optimal", "feasible")
    placed = [
        [(t["option"], t["ranks"]) for t in client.get(f"/v1/jobs/{id}/plan.json").json["tables"]]
        for id in (before, after)
    ]
    assert placed[0] == placed[1]
    assert client.post({**changed, "start": "nobody"}).code == 404
    said = client.post({**JOB, "most_moves": 1}).json["error"]  # the name that it had
    assert said == "request: max_moved: goes with start, the plan to start from"


def test_sizes_are_those_of_the_plan(client: Client) -> None:
    """The plan's cluster has the requested machines and memory, its model the rows after growth."""
    sizes = {"machines": 2, "hbm": 8 * 2**30, "ddr": 32 * 2**30, "growth": {"items": 50}}
    id = client.post({**JOB, **sizes}).json["id"]
    client.until(id, "done")
    plan = client.get(f"/v1/jobs/{id}/plan.json").json
    machines = plan["cluster"]["machines"]
    assert len(machines) == 2
    assert {m["ddr"] for m in machines} == {32 * 2**30}
    assert {r["hbm"] for m in machines for r in m["ranks"]} == {8 * 2**30}
    assert [table["rows"] for table in plan["model"]["tables"]] == [1_000_000, 600_000]


def test_a_cancelled_job_keeps_its_best_plan_and_the_queue_is_bounded(client: Client) -> None:
    """One job runs, two wait, and the next is refused with 429; a cancelled waiting job is gone at
    once, and the running one returns its best plan."""
    running = client.post(LONG).json["id"]
    client.until(running, "running")
    waiting = [client.post(JOB).json["id"] for _ in range(2)]
    refused = client.post(JOB)
    assert refused.code == 429 and "already waiting" in refused.json["error"]
    assert client.get(f"/v1/jobs/{waiting[0]}/plan.json").code == 409
    assert client.ask("DELETE", f"/v1/jobs/{waiting[1]}").json["state"] == "cancelled"
    for _ in range(600):
        if any(e["objective"] for e in _progress(client, running)):
            break
    assert client.ask("DELETE", f"/v1/jobs/{running}").code == 202
    job = client.until(running, "cancelled")
    assert job["result"]["stopped_by"] == "interrupted"
    assert client.get(f"/v1/jobs/{running}/plan.json").code == 200
    assert client.until(waiting[0], "done")
    assert client.events(waiting[1])[-1]["event"] == "cancelled"
    assert client.ask("DELETE", f"/v1/jobs/{running}").json["state"] == "cancelled"


def _progress(client: Client, id: str) -> list[dict]:
    """Progress so far, read from the open stream until some has come."""
    import urllib.request

    url = f"http://127.0.0.1:{client.port}/v1/jobs/{id}/events"
    with urllib.request.urlopen(url, timeout=60) as stream:
        for line in stream:
            if line.startswith(b"data: ") and json.loads(line[6:])["event"] == "progress":
                return [json.loads(line[6:])]
    return []


HOSTILE = [(text.encode(), words) for text, words in mistakes(__file__, "hostile bodies")]


@pytest.mark.parametrize(
    ("body", "words"),
    [*HOSTILE, (b"\xff\xfe", "not UTF-8"), (b"[" * 100_000, "nested too deeply")],
    ids=lambda value: str(value)[:20],
)
def test_hostile_bodies_get_a_sentence(client: Client, body: bytes, words: str) -> None:
    """Any such body gets 4xx with one sentence."""
    answer = client.ask("POST", "/v1/jobs", body)
    assert answer.code == 422 and words in answer.json["error"]
    assert "\n" not in answer.json["error"] and "Traceback" not in answer.text


def _with(field: str) -> dict[str, str]:
    return {"model": MODEL.replace("dim: 64}", f"dim: 64, {field}}}", 1)}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        *mistakes(__file__, "wrong fields"),
        ({"model": "\n" + "[" * 5_000}, "model"),
        (_with("access: {kind: sample, keys: /etc/passwd}"), "no files"),
        (_with("access: {kind: frequency, curve: /etc/passwd.csv}"), "curve"),
        ({"model": MODEL + "patterns: {'*': {access: {kind: sample, keys: k.csv}}}\n"}, "no files"),
        ({"cluster": CLUSTER.replace("a10", "/etc/passwd.yaml")}, "profile"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_may_not_be_asked_is_refused_in_a_sentence(
    client: Client, fields: dict[str, Any], words: str
) -> None:
    """422 with the field's name; no file of the server is opened."""
    answer = client.post({**JOB, **fields})
    assert answer.code == 422 and words in answer.json["error"]
    assert "root:" not in answer.text and len(answer.json["error"]) < 2_000


def test_size_type_host_and_origin_are_checked(client: Client) -> None:
    """413, even if no length is stated; 415; a page of another origin, and another host's name."""
    assert client.ask("POST", "/v1/jobs", b"x" * 200_001).code == 413
    assert client.ask("POST", "/v1/jobs", b"{}", Content_Type="text/plain").code == 415
    assert client.post(JOB, Origin="http://evil.example").code == 403
    assert client.get("/v1/jobs/nobody").code == 404
    assert client.ask("PUT", "/v1/jobs").code == 405
    assert client.get("/no/such/thing").json["error"] == "there is nothing here"
    with service(hosts={"127.0.0.1"}) as bound:
        assert bound.get("/v1/shipped").code == 200
        assert bound.get("/v1/shipped", Host="rebound.example").code == 421


def test_a_token_opens_all_but_the_page() -> None:
    """Without it 401; the page holds nothing secret and needs none."""
    with service(token="0123456789abcdef") as client:
        assert client.get("/v1/shipped").code == 200
        stranger = Client(client.port)
        for path in ("/v1/shipped", "/metrics", "/v1/jobs", "/openapi.json"):
            assert stranger.get(path).code == 401
        assert stranger.get("/v1/jobs", Authorization="Bearer nearly").code == 401
        assert stranger.get("/").code == 200


def test_too_much_memory_ends_a_job() -> None:
    """The process is ended, the job says why, the service goes on."""
    with service(Limits(memory=2**20)) as client:
        id = client.post(JOB).json["id"]
        assert "1,048,576 bytes of memory" in client.until(id, "failed")["message"]
        assert client.get("/healthz").code == 200


def test_old_jobs_are_forgotten() -> None:
    """The service keeps only the stated number of ended jobs."""
    with service(Limits(kept=1)) as client:
        ids = [client.post(ASKED).json["id"] for _ in range(2)]
        client.until(ids[1], "done")
        client.post(JOB)
        known = {job["id"] for job in client.get("/v1/jobs").json["jobs"]}
        assert ids[0] not in known and ids[1] in known


def test_metrics_and_description(client: Client) -> None:
    """Metrics count jobs and answers; every path of the description exists."""
    assert client.get("/healthz").code == 200
    text = client.get("/metrics").text
    assert 'milp_planner_jobs{state="running"} ' in text
    assert 'milp_planner_http_answers_total{code="200"}' in text
    described = client.get("/openapi.json").json
    assert described["openapi"].startswith("3.1")
    assert set(described["components"]["schemas"]["Asked"]["required"]) == {"model", "cluster"}
    for path, operations in described["paths"].items():
        for method in operations:
            filled = path.replace("{id}", "x").replace("{name}", "x").replace("{kind}", "models")
            assert client.ask(method.upper(), filled, b"" if method == "post" else None).code != 405


def test_the_page_is_strict(client: Client) -> None:
    """It allows nothing inline and nothing from elsewhere."""
    page = client.get("/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    assert "<style" not in page.text and "onclick" not in page.text and "http" not in page.text
