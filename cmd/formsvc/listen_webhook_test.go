//go:build long

package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// With --events, "formsvc listen" creates a webhook, and deletes it when it ends.
func TestListenCreatesAndDeletesWebhook(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		c := newClient(t, s.url, s.firstKey(t))
		campaign := c.campaign(t, "Listen")
		kept := hook(t, dsn, "http://127.0.0.1:9/kept", "all")
		hooks := func() []string {
			return strings.Split(strings.TrimSpace(manage(t, dsn, "webhooks", "list", "--json")), "\n")
		}
		var forwarded http.Header
		app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			forwarded = r.Header
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "no such table\n")
		}))
		t.Cleanup(app.Close)

		l := startListening(t, on(t, dsn, []string{
			"--addr", "127.0.0.1:0", "--events", "response.created,file.uploaded", "--campaign", campaign, "--forward", app.URL,
		})...)
		list := strings.Join(hooks(), "\n")
		if len(hooks()) != 2 || !strings.Contains(list, l.url+"formsvc-listen") || !strings.Contains(list, `"campaignUuid":"`+campaign+`"`) ||
			!strings.Contains(list, `["response.created","file.uploaded"]`) {
			t.Fatalf("the webhooks are\n%s", list)
		}
		c.submit(t, campaign, "x")
		eventually(t, "it prints the delivery", func() bool { return strings.HasSuffix(l.out.String(), "\n\n") })
		for _, want := range []string{"response.created", "\nverified, forwarded: status 500 in ", "\nresponse: no such table\n"} {
			if !strings.Contains(l.out.String(), want) {
				t.Errorf("it does not print %q:\n%s", want, l.out.String())
			}
		}
		if forwarded.Get("X-Service-Event") != "response.created" {
			t.Errorf("forwarded with %v", forwarded)
		}
		if code := l.interrupt(t); code != 0 {
			t.Errorf("it ended with status %d: %s", code, l.err.String())
		}
		if left := hooks(); len(left) != 1 || !strings.Contains(left[0], kept) {
			t.Errorf("afterwards the webhooks are %s", left)
		}
	})
}

// The webhook that a killed command left behind is replaced by the next command, even with other events. The secret can be
// chosen.
func TestListenReplacesLeftoverWebhook(t *testing.T) {
	t.Parallel()
	dsn := databases()[0].dsn(t)
	flags := on(t, dsn, []string{"--addr", freeAddrs(t, 1)[0]})
	if r := attempt(t, dsn, "accounts", "create", "default"); r.status != 0 {
		t.Fatal(r.err)
	}
	first := startListening(t, append(flags, "--events", "all")...)
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.done
	left := manage(t, dsn, "webhooks", "list", "--json")
	second := startListening(t, append(flags, "--events", "response.updated", "--secret", secret, "--secret", "the one before, still", "--json")...)
	list := manage(t, dsn, "webhooks", "list", "--json")
	if strings.Count(left, "\n") != 1 || strings.Count(list, "\n") != 1 || left == list || !strings.Contains(list, `["response.updated"]`) {
		t.Errorf("the webhooks were\n%s and are\n%s", left, list)
	}
	for _, key := range []string{secret, "the one before, still"} {
		body := []byte(`{"id":"1","event":"response.updated"}`)
		if status, _ := post(t, second.url, webhooktest.Header(key, body), body); status != http.StatusOK {
			t.Errorf("answered with %d", status)
		}
	}
	eventually(t, "it prints both", func() bool { return strings.Count(second.out.String(), "\n") == 2 })
	if got := decoded[received](t, second.out.String()); got[0].SecretIndex != 0 || got[1].SecretIndex != 1 {
		t.Errorf("it prints %+v", got)
	}
}

// Unusable flags create nothing.
func TestListenFlags(t *testing.T) {
	t.Parallel()
	dsn := databases()[0].dsn(t)
	if r := attempt(t, dsn, "accounts", "create", "default"); r.status != 0 {
		t.Fatal(r.err)
	}
	for _, tt := range []struct {
		flags  []string
		status int
		want   string
	}{
		{nil, 2, "--secret"},
		{[]string{"--secret", ""}, 2, "--secret"},
		{[]string{"--events", "all", "--secret", ""}, 2, "--secret"},
		{[]string{"--events", "all", "--secret", strings.Repeat("x", 257)}, 1, "secret"},
		{[]string{"--events", "response.removed"}, 1, "/events/0"},
		{[]string{"--events", "all", "--campaign", "x"}, 2, "--campaign"},
		{[]string{"--secret", secret, "--campaign", "0193bb79-f340-7000-8000-000000000001"}, 2, "--campaign"},
		{[]string{"--events", "all", "--forward", "localhost:3000"}, 2, "--forward"},
		{[]string{"--events", "all", "--account", "nobody"}, 1, "nobody"},
	} {
		r := attempt(t, dsn, append([]string{"listen", "--addr", "127.0.0.1:0"}, tt.flags...)...)
		if r.status != tt.status || !strings.Contains(r.err, tt.want) {
			t.Errorf("%q: status %d, %s", tt.flags, r.status, r.err)
		}
	}
	if list := manage(t, dsn, "webhooks", "list", "--json"); list != "" {
		t.Errorf("the webhooks are %s", list)
	}
}
