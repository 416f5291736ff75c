package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// listen starts "formsvc listen" and returns its address.
func (s *shell) listen(t testing.TB, flags ...string) (*process, string) {
	t.Helper()
	p := s.background(t, append([]string{"listen", "--addr", "127.0.0.1:0"}, flags...)...)
	match := p.log.wait(p.ctx, `Listening on (http://\S+/)`)
	if match == nil {
		t.Fatalf("listen ended with status %d", p.status)
	}
	return p, match[1]
}

// post sends a signed body, or one that was changed on its way, and returns the response.
func post(t testing.TB, url string, header http.Header, body []byte) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header.Clone()
	resp, err := http.DefaultTransport.RoundTrip(req) // follows no redirects
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer)
}

// With --events, the command creates a webhook, prints its deliveries, and deletes it at the end. It replaces one that a killed command left behind.
func TestListenCommand(t *testing.T) {
	t.Parallel()
	s := newShell(t).serve(t)
	campaign := s.campaign(t)
	kept := s.hook(t, "http://127.0.0.1:9/kept", "file.uploaded")
	p, url := s.listen(t, "--events", "response.created,file.uploaded", "--campaign", campaign)
	hooks := s.do(t, "webhooks", "list", "--json")
	contains(t, "the webhooks", hooks, url+"formsvc-listen", `"campaignUuid":"`+campaign+`"`, `["response.created","file.uploaded"]`)
	response := s.submit(t, campaign)
	p.out.wait(p.ctx, `\n\n$`)
	contains(t, "the output", p.out.String(), "response.created", "attempt 1", "\nverified\n", `"uuid": "`+response+`"`)
	if status := p.stop(); status != 0 {
		t.Errorf("status %d", status)
	}
	if left := s.list(t, "webhooks", "list"); len(left) != 1 || left[0]["uuid"] != kept {
		t.Errorf("afterwards the webhooks are %v", left)
	}
	addr := strings.Trim(url, "htp:/")
	s.hook(t, url+"formsvc-listen", "all") // as if the command had been killed
	s.listen(t, "--events", "response.updated", "--secret", testSecret, "--addr", addr)
	if list := s.list(t, "webhooks", "list"); len(list) != 2 || !strings.Contains(s.do(t, "webhooks", "list"), "response.updated") {
		t.Errorf("the webhooks are %v", list)
	}
}

// Verified deliveries are forwarded unchanged, others aren't. No request can control the terminal.
func TestListenForwards(t *testing.T) {
	t.Parallel()
	type forwarded struct {
		url    string
		header http.Header
		body   []byte
	}
	got := make(chan forwarded, 10)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- forwarded{r.URL.String(), r.Header, body}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusTemporaryRedirect)
		_, _ = io.WriteString(w, "not here")
	}))
	p, url := newShell(t).listen(t, "--json", "--forward", target.URL+"/local?x=1", "--secret", testSecret, "--secret", "the one before")
	payload := []byte("{\"id\":\"1\", \"event\":\"response.created\", \"x\":\"\u009b2J\u202e\" }\n")
	header := webhooktest.Header("the one before", payload)
	header.Set("X-Token", "t")
	if status, text := post(t, url+"public", header, payload); status != http.StatusTemporaryRedirect || text != "not here" {
		t.Errorf("the response is %d %q", status, text)
	}
	f := <-got
	if f.url != "/local?x=1" || !bytes.Equal(f.body, payload) || f.header.Get("X-Forwarded-For") != "" {
		t.Errorf("forwarded as %+v", f)
	}
	for name := range header {
		if f.header.Get(name) != header.Get(name) {
			t.Errorf("%s is forwarded as %q", name, f.header.Get(name))
		}
	}
	if status, _ := post(t, url, header, append(payload, 'x')); status != http.StatusUnauthorized {
		t.Errorf("a changed body: status %d", status)
	}
	if status, _ := post(t, url, http.Header{}, []byte("\x1b[2J")); status != http.StatusUnauthorized {
		t.Errorf("no signature: status %d", status)
	}
	target.Close()
	if status, text := post(t, url, header, payload); status != http.StatusBadGateway || strings.Contains(text, "127.0.0.1") {
		t.Errorf("without a receiver: %d %s", status, text)
	}
	if len(got) != 0 {
		t.Errorf("%d more were forwarded", len(got))
	}
	lacks(t, "the output", p.out.String(), "\u009b", "\u202e", "\x1b")
	list := objects(t, p.out.String())
	if len(list) != 4 || list[0]["verified"] != true || list[0]["forwarded"] != 307.0 || list[0]["eventUuid"] != "1" || list[1]["verified"] != false ||
		!strings.Contains(list[1]["error"].(string), "another secret") || list[3]["verified"] != true || !strings.Contains(list[3]["error"].(string), "refused") {
		t.Errorf("it prints %v", list)
	}
}

// Unusable flags create nothing.
func TestListenMistakes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.do(t, "accounts", "create", "default")
	listen := "listen --addr 127.0.0.1:0 "
	s.refuses(t, []mistake{
		{"listen", 2, "--secret"},
		{listen + "--secret=", 2, "--secret"},
		{listen + "--events all --secret=", 2, "--secret"},
		{listen + "--events all --secret " + strings.Repeat("x", 257), 1, "secret"},
		{listen + "--events response.removed", 1, "/events/0"},
		{listen + "--events all --campaign x", 2, "--campaign"},
		{listen + "--secret s --campaign " + nobody, 2, "--campaign"},
		{listen + "--events all --forward localhost:3000", 2, "--forward"},
		{listen + "--events all --account nobody", 1, "nobody"},
	})
	if list := s.list(t, "webhooks", "list"); len(list) != 0 {
		t.Errorf("the webhooks are %v", list)
	}
}
