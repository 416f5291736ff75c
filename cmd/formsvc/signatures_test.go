//go:build long

package main_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/webhook"
)

// hashers returns programs that read a response of the API and print the SHA-256 of its canonical answers. They follow the
// documentation and share no code with the program.
func hashers() map[string][]string {
	return map[string][]string{
		"python3": {"-c", `
import hashlib, json, sys
r = json.load(sys.stdin.buffer)["responses"]
r = {k: {"value": r[k]["value"]} for k in sorted(r, key=lambda k: k.encode("utf-16-be"))}
print(hashlib.sha256(json.dumps(r, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest())`},
		"node": {"-e", `
const responses = JSON.parse(require("fs").readFileSync(0, "utf8")).responses
const text = "{" + Object.keys(responses).sort().map(name =>
    JSON.stringify(name) + ":" + JSON.stringify({value: responses[name].value})).join(",") + "}"
console.log(require("crypto").createHash("sha256").update(text).digest("hex"))`},
	}
}

// hashedElsewhere fails the test unless every available hasher agrees.
func hashedElsewhere(t testing.TB, response []byte, want string) {
	t.Helper()
	ran := 0
	for name, args := range hashers() {
		if _, err := exec.LookPath(name); err != nil {
			continue
		}
		ran++
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Stdin, cmd.Stderr = bytes.NewReader(response), os.Stderr
		got, err := cmd.Output()
		if err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%s: %s, %v; documentSha256 is %s", name, got, err, want)
		}
	}
	if ran == 0 {
		missing(t, "there is neither python3 nor node here")
	}
}

// A response gets signatures and comments. A reader can compute the hash independently, and webhooks get the same data as
// the API returns.
func TestSignaturesAndComments(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		c := newClient(t, s.url, s.firstKey(t))
		r := receiver(t)
		hook(t, dsn, r.URL(), "signature.completed")
		value := func(v ...string) any { return map[string]any{"value": append([]string{}, v...)} }
		submitted := submission("signed")
		submitted["responses"] = map[string]any{
			"\uFFFD": value("a"), "😀": value("\u2028\u007f"), "é": value("\"\\/\b\f\n\r\t\u0001\u001f"), "10": value(), "9": value("", "<&>"), "B": value("b"),
		}
		campaign := c.campaign(t, "Contracts")
		var made response
		c.want(t, http.StatusCreated, http.MethodPost, responsesPath(campaign), submitted, &made)
		path := responsePath(campaign, made.UUID)

		var signed struct{ UUID, DocumentSha256 string }
		in := map[string]any{"signer": map[string]string{"email": "grace@example.com"}, "provider": "pen", "signedAt": "2026-01-02T03:04:05+01:00"}
		answered := c.want(t, http.StatusCreated, http.MethodPost, path+"/signatures", in, &signed)
		read := c.want(t, http.StatusOK, http.MethodGet, path, nil, nil)
		hashedElsewhere(t, read.body, signed.DocumentSha256)

		got := arrivals(t, r, 1)[0].Delivery
		var payload struct{ Data map[string]json.RawMessage }
		if err := json.Unmarshal(got.Body, &payload); err != nil || got.Event != webhook.SignatureCompleted ||
			!bytes.Equal(payload.Data["signature"], answered.body) ||
			!reflect.DeepEqual(object(t, payload.Data["response"]), object(t, read.body)) {
			t.Errorf("%s: %s, %v\nwant the signature %s", got.Event, got.Body, err, answered.body)
		}
		c.want(t, http.StatusCreated, http.MethodPost, path+"/comments", map[string]string{"body": "Signed, thanks!"}, nil)

		s.terminate(t)
		s.stopped(t)
		again := newClient(t, start(t, dsn).url, c.key)
		for list, want := range map[string]string{"/signatures": signed.UUID, "/comments": `"body":"Signed, thanks!","author":"`} {
			if a := again.want(t, http.StatusOK, http.MethodGet, path+list, nil, nil); !strings.Contains(string(a.body), want) {
				t.Errorf("%s after a restart: %s", list, a.body)
			}
		}
	})
}
