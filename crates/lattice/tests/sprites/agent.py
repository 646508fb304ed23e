# An agent that speaks the protocol itself: it opens a pull request for an issue, or amends one after a review.
import json, os, subprocess, time

SPRITE, ITEM = os.environ["LATTICE_SPRITE_ID"], os.environ["LATTICE_WORK_ITEM_ID"]


def emit(event_type, **payload):
    event = {"protocol_version": "v1", "event_type": event_type, "sprite_id": SPRITE, "work_item_id": ITEM,
             "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "payload": payload}
    line = json.dumps(event)
    with open("/workspace/.lattice/outbox.jsonl", "a") as outbox:
        outbox.write(line + "\n")
    print("LATTICE_EVENT " + line, flush=True)


def request(action, blocking=False, **parameters):
    emit("ACTION_REQUEST", action=action, parameters=parameters, blocking=blocking)


def git(*words):
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout.strip()


def commit(text, message):
    with open("cache.txt", "w") as file:
        file.write(text)
    git("add", "-A")
    git("commit", "--quiet", "-m", message)


def open_pull_request():
    emit("PHASE_STARTED", phase="implement")
    emit("INFO", message="reading the issue", kind="observation")
    commit("fixed\n", "Forget after an hour")
    emit("PHASE_FINISHED", phase="implement", success=True)
    request("POST_COMMENT", body="On it, @all.")
    request("LABEL_ISSUE", labels=["bug", "agent"])
    request("OPEN_PR", blocking=True, title="Fix cache", body="Resolves #1", base="main",
            head=git("branch", "--show-current"))
    checkpoint = subprocess.run(["lattice", "checkpoint"], check=True, capture_output=True, text=True).stdout.strip()
    emit("WAITING", reason="OPEN_PR", checkpoint_id=checkpoint,
         expected_inputs={"pr_number": "integer", "pr_url": "string"})


def go_on(answer):
    emit("INFO", message="resumed")
    print(json.dumps(answer, indent=1))
    status = answer["context"]["action"]["status"]
    emit("COMPLETED", status="success", summary=f'"status": "{status}"')


def amend():
    seen = "".join(open(os.path.join(folder, name)).read() for folder, _, names in os.walk(".lattice/context")
                   for name in names)
    assert "An hour is too short." in seen, "the review is part of what is delivered"
    commit("an hour and a minute\n", "As the review says")
    request("PUSH_TO_BRANCH", branch=git("branch", "--show-current"))
    request("NOTIFY_USER", message="pushed")
    emit("COMPLETED", status="success", summary="Amended.")


if os.path.exists(".lattice/resume.json"):
    go_on(json.load(open(".lattice/resume.json")))
elif ITEM.startswith("pr-"):
    amend()
else:
    open_pull_request()
