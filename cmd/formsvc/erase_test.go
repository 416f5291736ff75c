//go:build long

package main_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// The data of the person to erase. The name and the answer appear nowhere else.
const (
	eveEmail  = "Eve.Erased@Example.com"
	eveName   = "Unmistakable-Surname"
	eveAnswer = "unmistakable answer"
)

// erasing is a server with files on a disk and a webhook. A person has submitted a response and signed another person's
// response, and the events were delivered.
type erasing struct {
	*filing

	hook, campaign, path string
}

func newErasing(t *testing.T, dsn string) *erasing {
	t.Helper()
	e := &erasing{filing: &filing{dsn: dsn, place: places()["disk"](t)}}
	e.serve(t, "--webhook-retries", "100ms")
	r := receiver(t)
	r.Answer(webhooktest.Reply{Status: 500, Body: "nobody of the address " + eveEmail})
	e.hook = hook(t, dsn, r.URL(), "all")
	// Another webhook fails until it is deleted; its logged responses have no owner then.
	broken := receiver(t)
	broken.AnswerAlways(webhooktest.Reply{Status: 500, Body: "nobody of the address " + eveEmail})
	deleted := hook(t, dsn, broken.URL(), "response.created")
	others := e.response // of another person

	e.campaign = e.client.campaign(t, "Erase")
	e.path = responsePath(e.campaign, e.submitEve(t))
	e.response = e.path
	e.upload(t, "cv.pdf", bytesOf(3, 100_000))
	eve := map[string]string{"email": strings.ToLower(eveEmail), "firstName": "Eve", "lastName": eveName}
	e.want(t, http.StatusOK, http.MethodPatch, e.path, map[string]any{"status": "completed"}, nil)
	e.want(t, http.StatusCreated, http.MethodPost, e.path+"/comments", map[string]string{"body": "Called " + eveEmail}, nil)
	e.want(t, http.StatusCreated, http.MethodPost, others+"/signatures", map[string]any{"signer": eve}, nil)
	eventually(t, "the other one failed", func() bool { return len(deliveries(t, dsn, deleted, "--state", "failed")) == 1 })
	arrivals(t, r, 6) // created, file, two of the status, signature; one of them twice
	eventually(t, "all is delivered", func() bool { return len(deliveries(t, dsn, e.hook, "--state", "delivered")) == 5 })
	manage(t, dsn, "webhooks", "delete", deleted)
	return e
}

// submitEve submits once, with an Idempotency-Key.
func (e *erasing) submitEve(t testing.TB) string {
	t.Helper()
	a := e.repeatable(t)
	var made response
	if err := json.Unmarshal(a.body, &made); err != nil || a.status != http.StatusCreated {
		t.Fatalf("submit: status %d, %v\n%s", a.status, err, a.body)
	}
	return made.UUID
}

func (e *erasing) repeatable(t testing.TB) answer {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"user":      map[string]string{"email": eveEmail, "firstName": "Eve", "lastName": eveName},
		"responses": map[string]any{"q": map[string]any{"value": []string{eveAnswer}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := e.once(t.Context(), responsesPath(e.campaign), "the-key-of-eve", body, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// traces returns where the person's data is in the database and the log.
func (e *erasing) traces(t testing.TB) (list []string) {
	t.Helper()
	all := contents(t, e.dsn)
	all["the log"] = []byte(e.log.String())
	for name, content := range all {
		for _, text := range []string{eveEmail, eveName, eveAnswer} {
			if bytes.Contains(bytes.ToLower(content), []byte(strings.ToLower(text))) {
				list = append(list, text+" in "+name)
			}
		}
	}
	return list
}

// A receipt is what "erase --json" prints.
type receipt struct {
	Receipt, CampaignUUID, Before, FinishedAt       string
	Complete                                        bool
	Responses, Files, Signatures, Events, BlobsLeft int
}

func (e *erasing) run(t testing.TB, args ...string) (r receipt) {
	t.Helper()
	got := e.manage(t, append(args, "--json")...)
	if got.status != 0 {
		t.Fatalf("formsvc %s: status %d\n%s", strings.Join(args, " "), got.status, got.err)
	}
	if err := json.Unmarshal([]byte(got.out), &r); err != nil {
		t.Fatalf("%v\n%s", err, got.out)
	}
	if strings.Contains(strings.ToLower(got.out), strings.ToLower(eveEmail)) {
		t.Errorf("the receipt has the address: %s", got.out)
	}
	return r
}

// sum returns only the counts of a receipt.
func (r receipt) sum() receipt {
	r.Receipt, r.CampaignUUID, r.Before, r.FinishedAt, r.Complete = "", "", "", "", false
	return r
}

// Beside a running server, an erasure removes all data of a person from every file of the database. A receipt and audit
// entries stay.
func TestErase(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		e := newErasing(t, dsn)
		want := receipt{Responses: 1, Files: 1, Signatures: 1, Events: 5}
		if n := len(e.traces(t)); n < 3 {
			t.Fatalf("INVALID: %d traces before", n)
		}
		done := e.run(t, "erase", "--email", strings.ToUpper(eveEmail))
		if !done.Complete || done.sum() != want {
			t.Errorf("the receipt: %+v, want %+v", done, want)
		}

		e.want(t, http.StatusNotFound, http.MethodGet, e.path, nil, nil)
		if blobs, _ := e.stored(t); len(blobs) != 0 {
			t.Errorf("blobs are left: %q", blobs)
		}
		if list := deliveries(t, dsn, e.hook); len(list) != 0 {
			t.Errorf("%d deliveries are left", len(list))
		}
		if left := e.traces(t); len(left) != 0 {
			t.Errorf("traces are left: %q", left)
		}
		if a := e.repeatable(t); a.status != http.StatusGone {
			t.Errorf("the call again: status %d\n%s", a.status, a.body)
		}
		e.wantTrail(t, done.Receipt)
		if again := e.run(t, "erase", "--email", eveEmail); again.sum() != (receipt{}) {
			t.Errorf("the second time: %+v", again)
		}
		if got := e.manage(t, "erase", "--email", eveEmail); got.status != 0 || !strings.Contains(got.out, "events      0 removed") {
			t.Errorf("as text: %+v", got)
		}
	})
}

// auditEntry is what "audit list --json" prints.
type auditEntry struct {
	UUID, CreatedAt, Actor, Action, Target string
	Details                                map[string]string
}

func audit(t testing.TB, dsn string, flags ...string) []auditEntry {
	t.Helper()
	return decoded[auditEntry](t, manage(t, dsn, append([]string{"audit", "list", "--json"}, flags...)...))
}

// wantTrail checks the audit trail.
func (e *erasing) wantTrail(t testing.TB, receipt string) {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	list := audit(t, e.dsn)
	if len(list) != 7 {
		t.Fatalf("the audit trail is %+v", list)
	}
	cli := "cli " + me.Username
	for i, want := range []struct{ actor, action string }{
		{cli, "erasure.done"}, {cli, "erasure.begun"}, {cli, "webhook.deleted"}, {cli, "webhook.created"}, {cli, "webhook.created"},
		{"serve", "link.created"}, {"serve", "account.created"},
	} {
		if list[i].Actor != want.actor || list[i].Action != want.action || list[i].CreatedAt == "" {
			t.Errorf("entry %d is %+v, want %+v", i, list[i], want)
		}
	}
	if list[6].Details["key"] == "" || list[6].Details["name"] != "first key" {
		t.Errorf("the first key is not in the audit trail: %+v", list[6])
	}
	if list[0].Target != receipt || list[0].Details["events"] != "5" || list[4].Target != e.hook {
		t.Errorf("the audit trail is %+v", list)
	}
	if got := audit(t, e.dsn, "--limit", "2"); !reflect.DeepEqual(got, list[:2]) {
		t.Errorf("two entries: %+v", got)
	}
	if got := audit(t, e.dsn, "--action", "webhook.created", "--since", "1d", "--limit", "0"); !reflect.DeepEqual(got, list[3:5]) {
		t.Errorf("entries of one kind: %+v", got)
	}
	text := manage(t, e.dsn, "audit", "list")
	if !strings.Contains(text, "erasure.done") || strings.Count(text, "\n") != 8 || !strings.Contains(text, `"`+cli+`"`) {
		t.Errorf("as text: %s", text)
	}
}

// Old responses are removed. To avoid waiting, they are old at once or never here; package formsvc tests the age itself.
func TestRetention(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		e := newErasing(t, dsn)
		e.submit(t, e.campaign, "another")
		run := []string{"retention", "run", "--campaign", e.campaign, "--older-than"}
		if young := e.run(t, append(run, "365d")...); young.sum() != (receipt{}) || !young.Complete || young.CampaignUUID != e.campaign {
			t.Errorf("nothing is that old: %+v", young)
		}
		want := receipt{Responses: 2, Files: 1, Events: 5}
		eventually(t, "all is delivered", func() bool { return len(deliveries(t, dsn, e.hook, "--state", "delivered")) == 6 })
		if done := e.run(t, append(run, "1ms")...); done.sum() != want || done.Before == "" {
			t.Errorf("the receipt: %+v, want %+v", done, want)
		}
		if list := e.list(t, e.campaign); len(list) != 0 {
			t.Errorf("%d responses are left", len(list))
		}
		if list := deliveries(t, dsn, e.hook); len(list) != 1 { // of the signature, of another campaign
			t.Errorf("%d deliveries are left, want 1", len(list))
		}
		if blobs, _ := e.stored(t); len(blobs) != 0 {
			t.Errorf("blobs are left: %q", blobs)
		}
		if list := audit(t, dsn, "--action", "retention.done"); len(list) != 2 || list[0].Target != e.campaign || list[0].Details["responses"] != "2" {
			t.Errorf("the audit trail is %+v", list)
		}
	})
}

// Errors name the mistake, and failed commands change nothing.
func TestEraseCommandsNameTheMistake(t *testing.T) {
	t.Parallel()
	dsn := databases()[0].dsn(t)
	manage(t, dsn, "accounts", "create", "default")
	if err := os.MkdirAll(filepath.Join(dataDir(t, dsn), "files"), 0o700); err != nil { // which a server creates
		t.Fatal(err)
	}
	const nobody = "0198b0e1-3e6f-7c1a-8a4e-0123456789ab"
	for _, x := range []struct {
		args   string
		status int
		want   string
	}{
		{"erase", 2, "--email"},
		{"erase --email nonsense", 1, "/email"},
		{"erase --email eve@example.com --account Nobody", 1, "Nobody"},
		{"person export --email eve@example.com", 2, "--out"},
		{"retention run --older-than 1h", 2, "--campaign"},
		{"retention run --campaign " + nobody, 2, "--older-than"},
		{"retention run --older-than 1h --campaign x", 2, "--campaign"},
		{"retention run --older-than 1h --campaign " + nobody, 1, nobody},
		{"retention run --older-than 0d --campaign " + nobody, 2, "--older-than"},
		{"retention run --older-than=-1h --campaign " + nobody, 2, "--older-than"},
		{"retention run --older-than 1d-1h --campaign " + nobody, 2, "--older-than"},
		{"retention run --older-than 200000d --campaign " + nobody, 2, "--older-than"},
		{"retention run --older-than soon --campaign " + nobody, 2, "--older-than"},
		{"audit list --limit=-1", 2, "--limit"},
		{"audit list --since yesterday", 2, "--since"},
		{"audit list --account Nobody", 1, "Nobody"},
	} {
		got := attempt(t, dsn, strings.Fields(x.args)...)
		if got.status != x.status || !strings.Contains(got.err, x.want) || got.out != "" {
			t.Errorf("%s: status %d, %q, %q; want %d and %q", x.args, got.status, got.out, got.err, x.status, x.want)
		}
	}
	if list := audit(t, dsn); len(list) != 1 {
		t.Errorf("the audit trail is %+v", list)
	}
}

// Pending deliveries about an erased person are not sent.
func TestErasedResponseIsNotDelivered(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn, "--webhook-retries", "3s")
		c := newClient(t, s.url, s.firstKey(t))
		r := receiver(t)
		r.Answer(webhooktest.Reply{Status: 500})
		hook(t, dsn, r.URL(), "response.created")
		campaign := c.campaign(t, "Waiting")
		eve := submission("x")
		eve["user"] = map[string]string{"email": eveEmail}
		c.want(t, http.StatusCreated, http.MethodPost, responsesPath(campaign), eve, nil)
		arrivals(t, r, 1)
		manage(t, dsn, "erase", "--email", eveEmail)
		r.Answer(webhooktest.Reply{Status: 500})
		other := c.submit(t, campaign, "other").UUID
		for i, got := range arrivals(t, r, 3)[1:] { // the last one is due after the erased one would have been
			if e := parsed(t, got.Delivery.Body); e.Data.Response.UUID != other {
				t.Errorf("delivery %d after the erasure is %s", i, got.Delivery.Body)
			}
		}
	})
}
