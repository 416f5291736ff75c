//go:build long

package main_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// A listening is a running "formsvc listen".
type listening struct {
	url      string
	out, err output
	cmd      *exec.Cmd
	done     chan struct{}
}

var listenPattern = regexp.MustCompile(`Listening on (http://\S+/)`)

// listen starts "formsvc listen" for deliveries that are signed with secret.
func listen(t testing.TB, flags ...string) *listening {
	t.Helper()
	return startListening(t, append([]string{"--addr", "127.0.0.1:0", "--secret", secret}, flags...)...)
}

// startListening starts "formsvc listen" with these flags.
func startListening(t testing.TB, flags ...string) *listening {
	t.Helper()
	l := &listening{done: make(chan struct{})}
	l.cmd = exec.Command(program(t), append([]string{"listen"}, flags...)...)
	l.cmd.Dir, l.cmd.Env, l.cmd.Stdout, l.cmd.Stderr = t.TempDir(), environment(), &l.out, &l.err
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(l.done)
		_ = l.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = l.cmd.Process.Kill()
		<-l.done
	})
	eventually(t, "formsvc listens", func() bool {
		if m := listenPattern.FindStringSubmatch(l.err.String()); m != nil {
			l.url = m[1]
		}
		return l.url != ""
	})
	return l
}

// interrupt ends it like Ctrl-C and returns its exit status.
func (l *listening) interrupt(t testing.TB) int {
	t.Helper()
	if err := l.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it ends", func() bool {
		select {
		case <-l.done:
			return true
		default:
			return false
		}
	})
	return l.cmd.ProcessState.ExitCode()
}

// post sends a body with headers and returns the response.
func post(t testing.TB, url string, header http.Header, body []byte) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// received is a delivery in the output of "listen --json".
type received struct {
	Verified                              bool
	Error, Event, EventUUID, DeliveryUUID string
	Attempt, Forwarded, SecretIndex       int
	ForwardError                          string
	DurationMS                            float64
	Body                                  map[string]any
}

// "formsvc listen" verifies and prints a server's deliveries, and a signal ends it.
func TestListen(t *testing.T) {
	t.Parallel()
	dsn := databases()[0].dsn(t)
	s := start(t, dsn)
	c := newClient(t, s.url, s.firstKey(t))
	people, scripts := listen(t), listen(t, "--json")
	hook(t, dsn, people.url, "response.created")
	hook(t, dsn, scripts.url+"x", "response.created")
	uuid := c.submit(t, c.campaign(t, "Listen"), "x").UUID
	eventually(t, "both print the delivery", func() bool {
		return strings.HasSuffix(people.out.String(), "\n\n") && strings.HasSuffix(scripts.out.String(), "\n")
	})
	for _, want := range []string{"response.created", "attempt 1", "\nverified\n", `"uuid": "` + uuid + `"`, "\n  \"data\": {\n"} {
		if !strings.Contains(people.out.String(), want) {
			t.Errorf("it does not print %q:\n%s", want, people.out.String())
		}
	}
	got := decoded[received](t, scripts.out.String())
	if len(got) != 1 || !got[0].Verified || got[0].Event != "response.created" || got[0].EventUUID != got[0].Body["id"] ||
		!uuidPattern.MatchString(got[0].EventUUID) || got[0].DeliveryUUID == "" || got[0].Attempt != 1 {
		t.Errorf("it prints %s", scripts.out.String())
	}
	if code := people.interrupt(t); code != 0 {
		t.Errorf("it ended with status %d", code)
	}
}

// Requests that don't verify are printed with the reason and not forwarded. No request can control the terminal or fill the
// memory.
func TestListenRejectsUnverifiedRequests(t *testing.T) {
	t.Parallel()
	var forwarded atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { forwarded.Add(1) }))
	t.Cleanup(target.Close)
	people, scripts := listen(t, "--forward", target.URL), listen(t, "--forward", target.URL, "--json")
	evil := []byte("{\"event\":\"\u009b2J\u202e\"}")
	for _, x := range []struct {
		label  string
		header http.Header
		body   []byte
		status int
		why    string
	}{
		{"another secret", webhooktest.Header("another secret", evil), evil, 401, "signature"},
		{"no signature", http.Header{"X-Service-Event": {"response.created"}}, evil, 401, "signature"},
		{"not JSON", webhooktest.Header("another secret", []byte("\x1b[2J")), []byte("\x1b[2J"), 401, "signature"},
		{"too large", webhooktest.Header(secret, evil), bytes.Repeat([]byte("x"), 2<<20), 413, "large"},
	} {
		for _, l := range []*listening{people, scripts} {
			before := len(l.out.String())
			if status, _ := post(t, l.url, x.header.Clone(), x.body); status != x.status {
				t.Errorf("%s: answered with %d, want %d", x.label, status, x.status)
			}
			eventually(t, x.label+": it prints", func() bool { return len(l.out.String()) > before })
			if out := l.out.String()[before:]; !strings.Contains(out, x.why) || len(out) > 2048 {
				t.Errorf("%s: it prints %.3000s", x.label, out)
			}
		}
	}
	for _, bad := range []string{"\x1b", "\u009b", "\u202e"} {
		if strings.Contains(people.out.String()+scripts.out.String(), bad) {
			t.Errorf("it prints %q", bad)
		}
	}
	for _, r := range decoded[received](t, scripts.out.String()) {
		if r.Verified || r.Error == "" || r.Forwarded != 0 {
			t.Errorf("it prints %+v", r)
		}
	}
	if n := forwarded.Load(); n != 0 {
		t.Errorf("%d were forwarded", n)
	}
}

// Verified deliveries are forwarded unchanged. The response is the receiver's, or 502 if there is none.
func TestListenForwards(t *testing.T) {
	t.Parallel()
	var got []*http.Request
	var body []byte
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r)
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusTemporaryRedirect)
		_, _ = io.WriteString(w, "not here")
	}))
	t.Cleanup(target.Close)
	l := listen(t, "--json", "--forward", target.URL+"/local?x=1")
	payload := []byte("{\"id\":\"1\", \"event\":\"response.created\" }\n")
	header := webhooktest.Header(secret, payload)
	header.Set("X-Token", "t")
	header.Set("User-Agent", "formsvc-webhooks/1")
	if status, answer := post(t, l.url+"public", header.Clone(), payload); status != http.StatusTemporaryRedirect || answer != "not here" {
		t.Errorf("answered with %d %q", status, answer)
	}
	if len(got) != 1 || !bytes.Equal(body, payload) || got[0].URL.String() != "/local?x=1" {
		t.Fatalf("forwarded %d times, last as %q", len(got), body)
	}
	for name := range header {
		if v := got[0].Header.Values(name); len(v) != 1 || v[0] != header.Get(name) {
			t.Errorf("%s is forwarded as %q, came as %q", name, v, header.Get(name))
		}
	}
	if sent := got[0].Header.Get("X-Forwarded-For"); sent != "" {
		t.Errorf("X-Forwarded-For: %s was added", sent)
	}
	target.Close()
	status, answer := post(t, l.url, header.Clone(), payload)
	if status != http.StatusBadGateway || strings.Contains(answer, "127.0.0.1") {
		t.Errorf("without a receiver it answers with %d %s", status, answer)
	}
	eventually(t, "it prints both", func() bool { return strings.Count(l.out.String(), "\n") == 2 })
	printed := decoded[received](t, l.out.String())
	if printed[0].Forwarded != 307 || printed[0].DurationMS <= 0 || !printed[1].Verified ||
		!strings.Contains(printed[1].ForwardError, "refused") {
		t.Errorf("it prints %s", l.out.String())
	}
}
