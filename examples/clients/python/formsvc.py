"""A client of the Forms Campaign Service, to copy. It needs only Python 3.9."""
import http.client
import json as jsonlib
import mimetypes
import os
import random
import time
import urllib.parse
import urllib.request
import uuid
from email.utils import parsedate_to_datetime


class Problem(Exception):
    """The service refused a request. Branch on code; errors says what is wrong with each field."""

    def __init__(self, status, document, request_id):
        self.status, self.code, self.errors = status, document.get("code"), document.get("errors", [])
        self.request_id = request_id
        super().__init__(f"{status} {self.code}: {document.get('detail')} {self.errors or ''}".strip())


class Client:
    """Makes requests, and repeats those that failed for a moment for up to limit seconds."""

    def __init__(self, base_url, key, limit=60):
        self.base_url, self.key, self.limit = base_url.rstrip("/"), key, limit

    def request(self, method, path, json=None, params=None, headers=None, data=None):
        """Returns the decoded JSON, or bytes. data is bytes. A DELETE whose reply was lost gets 404 on its second attempt."""
        url = self.base_url + path + ("?" + urllib.parse.urlencode(params, doseq=True) if params else "")
        headers = {"Authorization": "Bearer " + self.key, **(headers or {})}
        if json is not None:
            data, headers["Content-Type"] = jsonlib.dumps(json).encode(), "application/json"
        if method == "POST":  # the same on each attempt, so that it takes effect once
            headers.setdefault("Idempotency-Key", str(uuid.uuid4()))
        request = urllib.request.Request(url, data, headers, method=method)
        end, pause = time.monotonic() + self.limit, 0.25
        while True:
            wait = random.uniform(0, pause)
            try:
                try:
                    reply = urllib.request.urlopen(request, timeout=max(1, min(30, end - time.monotonic())))
                except urllib.error.HTTPError as refusal:
                    reply = refusal
                with reply:
                    body = reply.read()
                if reply.headers.get_content_subtype() in ("json", "problem+json") and "Content-Disposition" not in reply.headers:
                    body = jsonlib.loads(body)
                if reply.status < 400:
                    return body
                failure = Problem(reply.status, body if isinstance(body, dict) else {}, reply.headers["X-Request-Id"])
                passing = reply.status in (408, 429, 502, 503, 504) and failure.code != "blob_corrupt"
                if not passing and failure.code != "idempotency_in_flight":
                    raise failure
                after = reply.headers["Retry-After"] or "0"  # seconds or a date
                wait += int(after) if after.isdigit() else max(0, parsedate_to_datetime(after).timestamp() - time.time())
            except (OSError, http.client.HTTPException) as error:  # the connection broke
                failure = error
            if time.monotonic() + wait >= end:
                raise failure
            time.sleep(wait)
            pause = min(2 * pause, 8)

    def pages(self, path, **params):
        """Yields the items of all pages of a list."""
        while True:
            page = self.request("GET", path, params=params)
            yield from page["items"]
            params["cursor"] = page.get("nextCursor")
            if not params["cursor"] or page.get("more") is False:  # the list of events has a cursor at its end
                return

    def upload(self, path, file, module=None):
        """Posts the file with that name to the path of a response's files, and returns its record."""
        with open(file, "rb") as content:
            data = content.read()  # whole, to be sent again
        headers = {"Content-Disposition": "attachment; filename*=UTF-8''" + urllib.parse.quote(os.path.basename(file), safe="")}
        headers["Content-Type"] = mimetypes.guess_type(file)[0] or "application/octet-stream"
        return self.request("POST", path, params={"module": module} if module else None, headers=headers, data=data)
