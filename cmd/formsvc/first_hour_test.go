package main_test

import (
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// The first start on an empty database creates an account and prints its key once.
func TestFirstStartPrintsAccountAndKeyOnce(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		key := s.firstKey(t)
		if strings.Contains(s.log.String(), key) {
			t.Errorf("the key is in the log")
		}
		for _, want := range []string{`account "default"`, s.url + "/v1/campaigns", s.url + "/docs"} {
			if !strings.Contains(s.out.String(), want) {
				t.Errorf("the first start does not print %q:\n%s", want, s.out.String())
			}
		}
		newClient(t, s.url, key).want(t, http.StatusOK, http.MethodGet, "/v1/me", nil, nil)
		nobody := newClient(t, s.url, "")
		nobody.want(t, http.StatusOK, http.MethodGet, "/docs", nil, nil)
		root := string(nobody.want(t, http.StatusOK, http.MethodGet, "/", nil, nil).body)
		for _, want := range []string{s.url + "/docs", s.url + "/openapi.json", s.url + "/settings"} {
			if !strings.Contains(root, `"href":"`+want+`"`) {
				t.Errorf("/ does not lead to %s: %s", want, root)
			}
		}
		description := nobody.want(t, http.StatusOK, http.MethodGet, "/openapi.json", nil, nil)
		if want := `"url": "` + s.url + `"`; !strings.Contains(string(description.body), want) {
			t.Errorf("/openapi.json does not name the server: no %s", want)
		}
		s.terminate(t)
		s.stopped(t)

		again := start(t, dsn)
		newClient(t, again.url, key).want(t, http.StatusOK, http.MethodGet, "/v1/me", nil, nil)
		again.terminate(t)
		again.stopped(t)
		if got := again.out.String(); got != "" {
			t.Errorf("the second start prints:\n%s", got)
		}
	})
}

// A new user's first hour: a campaign, a webhook, a response, a status.
func TestResponseAndStatusArriveAtWebhook(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		c := newClient(t, s.url, s.firstKey(t))
		campaign := c.campaign(t, "Bicycle survey – Übermut")
		r := receiver(t)
		hook(t, dsn, r.URL()+"/hooks/forms?tenant=7", "all")

		created := c.want(t, http.StatusCreated, http.MethodPost, responsesPath(campaign), submission("first"), nil)
		got := arrivals(t, r, 1)
		answered := object(t, created.body)
		path := responsePath(campaign, answered["uuid"].(string))
		if want := s.url + path; created.header.Get("Location") != want {
			t.Errorf("Location is %q, want %q", created.header.Get("Location"), want)
		}
		checkPayload(t, &got[0], "response.created", campaign, answered, nil)

		updated := c.want(t, http.StatusOK, http.MethodPatch, path, map[string]string{"status": "completed"}, nil)
		got = arrivals(t, r, 3)
		answered = object(t, updated.body)
		if answered["status"] != "completed" || answered["completedAt"] == nil {
			t.Errorf("the status update is answered with %s", updated.body)
		}
		slices.SortFunc(got[1:], func(a, b webhooktest.Received) int {
			return strings.Compare(string(b.Delivery.Event), string(a.Delivery.Event))
		})
		extra := map[string]any{"previousStatus": "pending"}
		checkPayload(t, &got[1], "response.status_changed", campaign, answered, extra)
		checkPayload(t, &got[2], "response.completed", campaign, answered, extra)

		read := c.want(t, http.StatusOK, http.MethodGet, path, nil, nil)
		if !reflect.DeepEqual(object(t, read.body), answered) {
			t.Errorf("read: %s\nwant: %s", read.body, updated.body)
		}
	})
}

var (
	timestampPattern = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
	uuidPattern      = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
)

// checkPayload checks a delivery: the fields of the specification with their types, and that there are no others except
// the contract's additions.
func checkPayload(
	t testing.TB, got *webhooktest.Received, name, campaign string, response, extra map[string]any,
) {
	t.Helper()
	payload := object(t, got.Delivery.Body)
	data, _ := payload["data"].(map[string]any)
	checkResponse(t, data["response"])
	if payload["event"] != name {
		t.Errorf("event is %v, want %s", payload["event"], name)
	}
	if s, _ := payload["timestamp"].(string); !timestampPattern.MatchString(s) {
		t.Errorf("%s: timestamp is %v, want ISO 8601 in UTC", name, payload["timestamp"])
	}

	wantData := map[string]any{
		"campaign": map[string]any{"uuid": campaign, "title": "Bicycle survey – Übermut"},
		"response": response,
	}
	maps.Copy(wantData, extra)
	want := map[string]any{
		"id": payload["id"], "event": name, "timestamp": payload["timestamp"], "data": wantData,
	}
	if !reflect.DeepEqual(payload, want) {
		t.Errorf("%s is\n%v, want\n%v", name, payload, want)
	}
	if s, _ := payload["id"].(string); !uuidPattern.MatchString(s) {
		t.Errorf("%s: id is %v, want a UUID of version 7", name, payload["id"])
	}
	for header, want := range map[string]string{
		"Content-Type": "application/json", "X-Service-Event": name, "X-Service-Attempt": "1",
	} {
		if v := got.Header.Get(header); v != want {
			t.Errorf("%s: %s is %q, want %q", name, header, v, want)
		}
	}
	if got.Path != "/hooks/forms" {
		t.Errorf("%s: sent to %s", name, got.Path)
	}
}

// checkResponse checks the fields of a response that the specification lists.
func checkResponse(t testing.TB, v any) {
	t.Helper()
	r, _ := v.(map[string]any)
	for _, member := range []string{"uuid", "reference", "status", "createdAt"} {
		if s, _ := r[member].(string); s == "" {
			t.Errorf("response: %s is %v, want text", member, r[member])
		}
	}
	want := submission("first")
	user := map[string]any{"email": "ada@example.com", "firstName": "Ada", "lastName": "Lovelace"}
	answers := map[string]any{"marker": map[string]any{"value": []any{"first"}}}
	if !reflect.DeepEqual(r["user"], user) || !reflect.DeepEqual(r["responses"], answers) {
		t.Errorf("response: user and responses are %v and %v, want those of %v", r["user"], r["responses"], want)
	}
	if s, _ := r["createdAt"].(string); !timestampPattern.MatchString(s) {
		t.Errorf("response: createdAt is %v, want ISO 8601 in UTC", r["createdAt"])
	}
}
