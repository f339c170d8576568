"""An MCP client over stdio that measures: one server process and the JSON-RPC connection to it."""
from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import threading
import time

from machine import DIRECT_CHILDREN, kill_leftovers, now, reap

CALL_SECONDS = 90  # longest wait for one answer


class Server:
    """One server process and the JSON-RPC connection to it."""

    def __init__(self, config, logs):
        self.config, self.noise, self.next_id = config, 0, 0
        self.waiting: dict[int, queue.Queue] = {}
        self.write_lock, self.exited = threading.Lock(), threading.Event()
        log_name = re.sub(r"[^\w.-]", "_", config["name"]) + ".stderr"
        self.started = now()
        self.process = subprocess.Popen(
            config["command"], env={**os.environ, **config.get("env", {})}, cwd=config.get("cwd"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(os.path.join(logs, log_name), "ab"),
            start_new_session=True)
        DIRECT_CHILDREN.add(self.process.pid)
        threading.Thread(target=self.read_answers, daemon=True).start()

    def read_answers(self):
        for line in self.process.stdout:
            arrived = now()
            try:
                message = json.loads(line)
                is_request = "method" in message
            except (ValueError, TypeError):
                self.noise += 1  # the transport allows nothing but messages on stdout
                continue
            if is_request:
                if "id" in message:
                    self.answer_server(message)
            elif waiter := self.waiting.pop(message.get("id"), None):
                waiter.put((arrived, message))
        self.exited.set()
        for waiter in list(self.waiting.values()):
            waiter.put((now(), {"error": {"message": "SERVER EXITED"}}))

    def answer_server(self, request):
        answers = {"ping": {}, "roots/list": {"roots": []}}
        if request["method"] in answers:
            self.send({"jsonrpc": "2.0", "id": request["id"], "result": answers[request["method"]]})
        else:
            self.send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "not supported"}})

    def send(self, message):
        with self.write_lock:
            self.process.stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
            self.process.stdin.flush()

    def begin(self, method, params, waiter=None):
        """Send a request; (id, queue that will hold (arrival, answer), time of sending)."""
        self.next_id += 1
        waiter = self.waiting[self.next_id] = waiter or queue.Queue()
        sent = now()
        try:
            self.send({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params})
        except OSError as error:
            waiter.put((now(), {"error": {"message": f"SEND FAILED {error}"}}))
        return self.next_id, waiter, sent

    def request(self, method, params, timeout=CALL_SECONDS):
        """(seconds, answer), or (None, None) when none came."""
        _, waiter, sent = self.begin(method, params)
        try:
            arrived, message = waiter.get(timeout=timeout)
        except queue.Empty:
            return None, None
        return arrived - sent, message

    def notify(self, method, params):
        try:
            self.send({"jsonrpc": "2.0", "method": method, "params": params})
        except OSError:
            pass

    def initialize(self):
        """Seconds from spawn to the answer."""
        _, answer = self.request("initialize", {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "mcp-bench", "version": "1"}})
        if not answer or "error" in answer:
            raise RuntimeError(f"initialize failed: {answer}")
        seconds = now() - self.started
        self.notify("notifications/initialized", {})
        return seconds

    def call_params(self, language, code, limit=None):
        spec = self.config[language]
        arguments = {key: code if value == "${code}" else value for key, value in spec["args"].items()}
        if limit and spec.get("timeout_arg"):
            arguments[spec["timeout_arg"]] = limit * spec.get("timeout_scale", 1)
        return {"name": spec["tool"], "arguments": arguments}

    def call(self, language, code, timeout=CALL_SECONDS, limit=None):
        """(seconds, text, failed) of one run."""
        seconds, message = self.request("tools/call", self.call_params(language, code, limit), timeout)
        return seconds, text_of(message), failed(message)

    def close(self):
        """End the server as a client would; how it ended and what survived it."""
        for how, end in (("stdin EOF", self.process.stdin.close), ("SIGTERM", self.process.terminate),
                         ("SIGKILL", self.process.kill)):
            try:
                end()
                self.process.wait(3)
                break
            except (OSError, subprocess.TimeoutExpired):
                continue
        self.process.wait()
        DIRECT_CHILDREN.discard(self.process.pid)
        time.sleep(0.3)
        reap()
        return {"ended_by": how, "survivors": kill_leftovers()}


def text_of(message):
    if message is None:
        return "NO ANSWER"
    if "error" in message:
        return "RPC ERROR " + str(message["error"].get("message"))
    result = message.get("result") or {}
    texts = [part.get("text", "") for part in result.get("content", []) if part.get("type") == "text"]
    return "\n".join(texts) if texts else json.dumps(result.get("structuredContent"))


def failed(message):
    return message is None or "error" in message or bool((message.get("result") or {}).get("isError"))
