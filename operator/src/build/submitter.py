"""Hands the Ray job of a RayJob to Ray exactly once, and tells how it ended.

Runs in the submitter container, with nothing but Python and Ray. What the user wrote arrives as JSON in an environment variable:
no shell reads it. Commands: `submit` waits for the dashboard and submits the job unless Ray has it; `result` tells by its exit code
how the job ended (0), that it failed (1, only with `strict`), or that it goes on (75). A job that was handed over and that Ray no
longer knows was lost with its head. Whether it is run again is for the RayJob to say; ending well keeps Kubernetes from starting
another submitter, which would hand it over a second time.
"""

import json
import os
import sys
import time
import urllib.request

PATIENCE = 60.0
# A head that is replaced takes its time.
PATIENCE_WITH_A_KNOWN_JOB = 300.0
PAUSE = 2.0
GOES_ON = 75


def say(*words):
    print(*words, flush=True)


def address():
    text = os.environ["RAY_DASHBOARD_ADDRESS"]
    return text if text.startswith(("http://", "https://")) else "http://" + text


def wait_for_dashboard():
    while True:
        try:
            with urllib.request.urlopen(address() + "/api/gcs_healthz", timeout=10) as reply:
                if b"success" in reply.read():
                    return
        except Exception:
            pass
        say("Waiting until the Ray dashboard at", address(), "answers")
        time.sleep(PAUSE)


def client():
    from ray.job_submission import JobSubmissionClient

    headers = os.environ.get("RAY_JOB_HEADERS")
    return JobSubmissionClient(address(), True, headers=json.loads(headers) if headers else None)


def state(ray, job_id):
    """The state of the job as a word; None if Ray does not know the job."""
    try:
        found = ray.get_job_status(job_id)
    except RuntimeError as error:
        if "does not exist" in str(error):
            return None
        raise
    return str(getattr(found, "value", found))


def passes(error):
    """Whether a failure may be gone at the next try: no connection, or a server that is not itself yet."""
    text = str(error)
    return isinstance(error, OSError) or ("status code 5" in text and "status code 4" not in text)


def patiently(action, patience=PATIENCE):
    end = time.monotonic() + patience
    while True:
        try:
            return action()
        except (OSError, RuntimeError) as error:
            if not passes(error) or time.monotonic() > end:
                raise
            say("Ray gives no answer yet:", error)
        time.sleep(PAUSE)


def submit():
    request = json.loads(os.environ["RAY_JOB_SUBMISSION_REQUEST"])
    job_id = request["submission_id"]
    wait_for_dashboard()

    def once():
        ray = client()
        known = state(ray, job_id)
        if known is not None:
            say("Ray has job", job_id, "already; its state is", known)
            return
        try:
            ray.submit_job(**request)
        except RuntimeError as error:
            if "Please use a different submission_id" not in str(error):
                raise
            say("Ray has job", job_id, "already")
        else:
            say("Submitted job", job_id, "to", address())

    patiently(once)
    return 0


def result(strict):
    job_id = os.environ["RAY_JOB_SUBMISSION_ID"]
    found = patiently(lambda: state(client(), job_id), PATIENCE_WITH_A_KNOWN_JOB)
    if found is None:
        say("Ray no longer knows job", job_id)
        return 1 if strict else 0
    say("State of job", job_id, "is", found)
    if found in ("SUCCEEDED", "STOPPED"):
        return 0
    if found == "FAILED":
        return 1 if strict else 0
    time.sleep(PAUSE)
    return GOES_ON


sys.exit(submit() if sys.argv[1] == "submit" else result("strict" in sys.argv[2:]))
