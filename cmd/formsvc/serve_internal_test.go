package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// Values that fail only when the server is built are usage errors too. They create nothing.
func TestServeMistakes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	busy := must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))
	defer func() { _ = busy.Close() }()
	serve, unknown := "serve --addr 127.0.0.1:0 ", filepath.Join(t.TempDir(), "workflow.json")
	noError(t, os.WriteFile(unknown, []byte(`{"statuses":["a"],"final":["b"]}`), 0o600))
	for _, x := range []struct{ flag, args string }{
		{"--base-url", "--base-url=forms.example.com"},
		{"--webhook-retries", "--webhook-retries=1m,-5m"},
		{"--webhook-timeout", "--webhook-timeout=-1s"},
		{"--webhook-lease", "--webhook-lease=20s"},
		{"--webhook-concurrency", "--webhook-concurrency=-1"},
		{"--retention", "--retention=-1h"},
		{"--retention", "--retention=30m --webhook-retries=1s"},
		{"--retention", "--retention=2h --webhook-retries=1h,1h"},
		{"--smtp", "--smtp=mail.example.com"},
		{"--mail-from", "--smtp=smtp://mail.example.com"},
		{"--secret-keys", "--secret-keys=short"},
		{"--webhook-allow", "--webhook-allow=10.0.0.0"},
		{"--trusted-proxy", "--trusted-proxy=10.0.0.0"},
		{"--quota", "--quota=-1"}, {"--quota", "--quota=99999999999"}, {"--quota-window", "--quota-window=0s"}, {"--quota-window", "--quota-window=1500ms"},
		{"--rate", "--rate=-1"}, {"--rate", "--rate=NaN"},
		{"--max-requests", "--max-requests=0"}, {"--max-connections", "--max-connections=0"},
		{"--request-timeout", "--request-timeout=0s"}, {"--max-keys", "--max-keys=-1"}, {"--max-campaigns", "--max-campaigns=-1"}, {"--mails-per-address", "--mails-per-address=-1"}, {"--mails-per-hour", "--mails-per-hour=-1"},
		{"--max-upload", "--max-upload=-1"}, {"--drain-delay", "--drain-delay=-1s"}, {"--ready", "--ready=moon"},
		{"--tls-key", "--tls-cert=cert.pem"}, {"--tls-cert", "--tls-cert=cert.pem --tls-key=key.pem"}, {"--redirect-addr", "--redirect-addr=:0"},
		{"--autocert-domain", "--autocert-domain=localhost"}, {"--autocert-email", "--autocert-email=ops@example.com"},
		{"--autocert-directory", "--autocert-domain=forms.example.com --autocert-directory=http://ca"},
		{"--base-url", "--autocert-domain=forms.example.com --base-url=http://forms.example.com"},
		{"--blobs", "--blobs=ftp://x"}, {"--workflow", "--workflow=missing.json"}, {"--workflow", "--workflow=" + unknown},
	} {
		s.refuses(t, []mistake{{serve + x.args, 2, x.flag}})
	}
	s.refuses(t, []mistake{
		{serve + "--metrics-addr=nowhere", 1, "--metrics-addr"},
		{"serve --addr " + busy.Addr().String(), 1, busy.Addr().String()},
	})
	if _, err := os.Stat(s.data); err == nil {
		t.Error("the data directory was created")
	}
}

// The flags for quotas and rates reach the API; 0 is no quota. By default a key may make 1000 requests an hour.
func TestServeLimits(t *testing.T) {
	t.Parallel()
	sh, key := newShell(t), ""
	third := func(flags ...string) answer {
		s := sh.serve(t, flags...)
		defer s.stop()
		key = cmp.Or(s.key, key)
		s.key = key
		s.get(t, "/v1/me")
		s.get(t, "/v1/me")
		return s.get(t, "/v1/me")
	}
	if a := third("--quota", "1000"); a.header.Get("RateLimit-Policy") != `"key";q=1000;w=3600` || a.header.Get("X-RateLimit-Remaining") != "997" {
		t.Errorf("by default: %v", a)
	}
	if a := third("--quota", "2", "--quota-window", "438000h", "--quota-per-account"); a.header.Get("RateLimit-Policy") != `"account";q=2;w=1576800000` || a.status != 429 {
		t.Errorf("--quota 2: %v", a)
	}
	if a := third("--quota", "0"); a.header.Get("RateLimit-Policy") != "" || a.status != 200 {
		t.Errorf("--quota 0: %v", a)
	}
	if a := third("--rate", "0.001"); a.status != 429 || a.header.Get("Retry-After") == "" {
		t.Errorf("--rate: %v", a)
	}
}

// --workflow says which statuses responses may have.
func TestServeWorkflow(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "workflow.json")
	noError(t, os.WriteFile(file, []byte(`{"statuses":["granted","completed"],"transitions":{"pending":["granted"]},"final":["granted"]}`), 0o600))
	s := newShell(t).serve(t, "--workflow", file)
	campaign := s.campaign(t)
	response := responses(campaign) + "/" + s.submit(t, campaign)
	for status, want := range map[string]int{"validated": 422, "completed": 409} {
		s.call(t, want, "PATCH", response, map[string]string{"status": status})
	}
	lacks(t, "a granted response", s.call(t, 200, "PATCH", response, map[string]string{"status": "granted"}), `"completedAt":null`)
}

// Behind a trusted proxy, wrong keys of one client don't lock out another.
func TestServeTellsClientsApart(t *testing.T) {
	t.Parallel()
	s := newShell(t).serve(t, "--trusted-proxy", "127.0.0.0/8")
	s.key = "guessed"
	for _, path := range []string{"/v1/me", "/console/"} {
		guess := func(from string) int {
			return s.get(t, path, "X-Forwarded-For: "+from, "Cookie: formsvc_session=guessed").status
		}
		until(t, "the one that guesses is limited", func() bool { return guess("192.0.2.1") == http.StatusTooManyRequests })
		equal(t, guess("192.0.2.2"), http.StatusUnauthorized, "%s: the other client gets %d", path)
	}
}

// Beyond --max-connections, clients wait until another one disconnects.
func TestMaxConnections(t *testing.T) {
	t.Parallel()
	first := newShell(t).serve(t, "--max-connections", "1")
	transport := new(http.Transport)
	first.client = &http.Client{Transport: transport}
	first.campaign(t) // its connection stays open
	second := &service{url: first.url, key: first.key, client: &http.Client{Transport: new(http.Transport)}}
	waiting := make(chan error, 1)
	go func() {
		_, err := second.ask(t.Context(), http.MethodGet, "/v1/me", nil)
		waiting <- err
	}()
	for range 50 {
		first.campaign(t)
		if len(waiting) > 0 {
			t.Fatal("a second connection was served")
		}
	}
	transport.CloseIdleConnections()
	noError(t, <-waiting)
}

// A pipe is a listener with connections in memory, which follow the clock of testing/synctest.
type pipe struct{ conns chan net.Conn }

func (p pipe) Accept() (net.Conn, error) {
	if conn, ok := <-p.conns; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}
func (pipe) Close() error   { return nil }
func (pipe) Addr() net.Addr { return &net.TCPAddr{} }

// Clients that send or read nothing are disconnected in time.
func TestStalledClientsAreDisconnected(t *testing.T) {
	t.Parallel()
	for request, limit := range map[string]time.Duration{
		"GET / HTTP/1.1\r\nHost": readHeaderTimeout,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nbody": readTimeout,
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n":                           writeTimeout, // nobody reads the response
	} {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan struct{})
			server := (&node{logger: slog.New(slog.DiscardHandler)}).server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = w.Write(make([]byte, 1<<20))
			}))
			closed := make(chan struct{})
			server.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateClosed {
					close(closed)
				}
			}
			client, conn := net.Pipe()
			p := pipe{make(chan net.Conn, 1)}
			p.conns <- conn
			go func() { _ = server.Serve(p) }()
			began := time.Now()
			_, _ = io.WriteString(client, request)
			if limit != writeTimeout {
				go func() { _, _ = io.Copy(io.Discard, client) }()
			}
			select {
			case <-closed:
			case <-ended: // the handler gave up
			}
			equal(t, time.Since(began), limit, "%q: %v", request)
			_ = client.Close()
			close(p.conns)
		})
	}
}

// Several servers that start at once on an empty database create one account, and one prints its key.
func TestServersThatStartAtOnce(t *testing.T) {
	t.Parallel()
	for name, sh := range map[string]*shell{"sqlite": newShell(t), "postgres": onPostgres(t)} {
		var starting sync.WaitGroup
		list := make([]*process, 3)
		for i := range list {
			list[i] = sh.background(t, "serve", "--addr", "127.0.0.1:0", "--log-format", "json")
			starting.Go(func() { list[i].log.wait(list[i].ctx, `"msg":"serving"`) })
		}
		starting.Wait()
		printed := ""
		for _, p := range list {
			if status := p.stop(); status != 0 {
				t.Errorf("%s: status %d\n%s", name, status, p.log.String())
			}
			printed += p.out.String()
		}
		if keys := regexp.MustCompile(`(?m)^  (formsvc_\w+)$`).FindAllString(printed, -1); len(keys) != 1 || len(sh.list(t, "accounts", "list")) != 1 {
			t.Errorf("%s: %d keys were printed:\n%s", name, len(keys), printed)
		}
	}
}

// A process manager is told when the server serves and when it stops.
func TestManagerIsNotified(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "n") //nolint:usetesting // socket paths are short
	noError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	conn := must(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"}))
	t.Cleanup(func() { _ = conn.Close() })
	next := func() string {
		buf := make([]byte, 100)
		n, err := conn.Read(buf)
		return fmt.Sprint(string(buf[:n]), err)
	}
	sh := newShell(t)
	sh.env = environment{"NOTIFY_SOCKET=" + path}
	s := sh.serve(t)
	equal(t, next(), "READY=1<nil>", "told %q first")
	s.call(t, http.StatusOK, http.MethodGet, "/readyz", nil)
	s.cancel()
	equal(t, next(), "STOPPING=1<nil>", "told %q when it stops")
	equal(t, s.stop(), 0, "status %d")
}

// Webhooks can't be saved for private addresses over the API, and an address that isn't allowed anymore gets no connection.
func TestServeChecksWebhookAddresses(t *testing.T) {
	t.Parallel()
	sh := newShell(t)
	p := sh.background(t, "serve", "--addr", "127.0.0.1:0", "--log-format", "json", "--webhook-retries", "10ms", "--webhook-allow", "10.0.0.0/8,192.168.0.0/16")
	s := sh.await(t, p)
	contains(t, "the log", p.log.String(), `"ranges":["10.0.0.0/8","192.168.0.0/16"]`)
	hook := func(url string) any { return map[string]any{"url": url, "events": []string{"response.created"}} }
	s.made(t, "/v1/webhooks", hook("http://10.1.2.3/"))
	contains(t, "the refusal", s.call(t, http.StatusUnprocessableEntity, http.MethodPost, "/v1/webhooks", hook("http://127.0.0.1:8080/")), `"pointer":"/url"`)
	r := receive(t)
	uuid := s.hook(t, r.URL(), "response.created") // this command allows it
	s.submit(t, s.campaign(t))
	var list []map[string]any
	until(t, "the delivery ends", func() bool {
		list = s.list(t, "webhooks", "deliveries", uuid)
		return len(list) == 1 && list[0]["state"] != "pending"
	})
	if a := list[0]["attempts"].([]any)[0].(map[string]any); a["error"] != "refused_address" || len(r.Deliveries())+len(r.Rejected()) != 0 {
		t.Errorf("the attempt is %v; %d arrived", a, len(r.Deliveries()))
	}
}

// metrics reads the metrics of a server.
func (s *service) metrics(t testing.TB) string {
	t.Helper()
	return fetchedBy(t, http.DefaultClient, "http://"+s.log.wait(s.ctx, `"metricsAddr":"([^"]+)"`)[1]+"/metrics")
}

// A form takes answers and files without a key, from each client address so many. Its address is in no log and no metric.
func TestServeForms(t *testing.T) {
	t.Parallel()
	s := newShell(t).serve(t, "--metrics-addr", "127.0.0.1:0", "--log-requests", "--trusted-proxy", "127.0.0.0/8", "--forms-per-visitor", "2")
	var campaign struct {
		UUID string
		Form struct{ Token, URL string }
	}
	noError(t, json.Unmarshal([]byte(s.call(t, http.StatusCreated, http.MethodPost, "/v1/campaigns", json.RawMessage(
		`{"title":"Jobs","form":{"enabled":true},"modules":[{"name":"cv","type":"file","required":true}]}`))), &campaign))
	s.key = ""
	if a := s.get(t, "/f/"+campaign.Form.Token); a.status != http.StatusOK || !strings.Contains(a.body, "Jobs</h1>") || campaign.Form.URL != s.url+"/f/"+campaign.Form.Token {
		t.Fatalf("%+v %+v", campaign.Form, a)
	}
	form := "--x\r\nContent-Disposition: form-data; name=\"email\"\r\n\r\nada@example.com\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"cv\"; filename=\"cv.txt\"\r\n\r\nhired\r\n--x--\r\n"
	s.client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	send := func(address string) int {
		a := must(s.ask(t.Context(), http.MethodPost, "/f/"+campaign.Form.Token, []byte(form), "Content-Type: multipart/form-data; boundary=x", "X-Forwarded-For: "+address))
		return a.status
	}
	for range 2 {
		if status := send("192.0.2.1"); status != http.StatusSeeOther {
			t.Fatalf("status %d", status)
		}
	}
	if send("192.0.2.1") != http.StatusTooManyRequests || send("192.0.2.2") != http.StatusSeeOther {
		t.Error("addresses aren't told apart")
	}
	s.key = regexp.MustCompile(`\bformsvc_[0-9A-Za-z]{49}\b`).FindString(s.out.String())
	path := "/v1/campaigns/" + campaign.UUID + "/responses"
	first := regexp.MustCompile(`"items":\[{"uuid":"([^"]+)"`).FindStringSubmatch(s.get(t, path).body)
	if first == nil || !strings.Contains(s.get(t, path+"/"+first[1]+"/files").body, `"name":"cv.txt"`) {
		t.Errorf("no response with a file: %v", first)
	}
	metrics := s.metrics(t)
	contains(t, "metrics", metrics, `formsvc_http_requests_total{code="303",method="POST",route="/f/"} 3`, `{code="429",method="POST",route="/f/"} 1`)
	s.stop()
	contains(t, "log", s.log.String(), `"route":"/f/","status":303`)
	lacks(t, "log and metrics", s.log.String()+metrics, campaign.Form.Token, "ada@example.com")
}

// The metrics have the right values, follow Prometheus's conventions, and have no secrets or client data in their labels.
func TestServeMetrics(t *testing.T) {
	t.Parallel()
	for name, sh := range map[string]*shell{"sqlite": newShell(t), "postgres": onPostgres(t)} {
		s := sh.serve(t, "--metrics-addr", "127.0.0.1:0", "--webhook-retries", "10ms,1h")
		good, bad := receive(t), receive(t)
		bad.AnswerAlways(webhooktest.Reply{Status: 500})
		s.hook(t, good.URL()+"/path-token", "response.created")
		s.hook(t, bad.URL(), "response.created")
		campaign := s.campaign(t)
		for range 3 {
			s.submit(t, campaign)
		}
		s.call(t, http.StatusNotFound, http.MethodGet, "/v1/elsewhere", nil)
		s.call(t, http.StatusNotFound, http.MethodGet, "/metrics", nil)
		arrived(t, good, 3)
		arrived(t, bad, 6)
		whole, text := "", ""
		until(t, "the attempts and the backlog are shown", func() bool {
			whole = s.metrics(t)
			text = strings.Join(regexp.MustCompile(`(?m)^formsvc_.*\n`).FindAllString("\n"+whole, -1), "")
			return strings.Contains(text, "formsvc_webhook_attempts_total{class=\"status\"} 6\n") &&
				strings.Contains(text, "\nformsvc_webhook_attempts_total{class=\"delivered\"} 3\n") &&
				strings.Contains(text, "\nformsvc_webhook_pending 3\n") && strings.Contains(text, `_in_flight{lane="fast"} 0`+"\n")
		})
		contains(t, name, text,
			`formsvc_webhook_attempt_seconds_count{class="delivered"} 3`, "formsvc_webhook_blocked 0",
			"formsvc_webhook_failures_total 0", "formsvc_webhook_oldest_due_seconds 0", "formsvc_webhook_stats_errors_total 0",
			`formsvc_http_requests_total{code="201",method="POST",route="/v1/campaigns/{uuid}/responses"} 3`,
			`formsvc_http_requests_total{code="404",method="GET",route="other"} 2`, `formsvc_http_request_seconds_count{route="/v1/campaigns/{uuid}/responses"} 3`,
			"formsvc_http_in_flight 0")
		for _, name := range []string{"\ngo_goroutines ", "\nprocess_resident_memory_bytes ", "\ngo_build_info{"} {
			contains(t, "the text", whole, name)
		}
		lacks(t, name, text, s.key, testSecret, "path-token", "127.0.0.1", campaign, "elsewhere")
		if name == "postgres" {
			contains(t, name, text, `formsvc_db_connections{state="in_use"}`, `formsvc_db_connections{state="idle"}`, "formsvc_db_connections_max ", "formsvc_db_wait_seconds_total ", "formsvc_db_waits_total ")
		}
		problems, err := promlint.New(strings.NewReader(whole)).Lint()
		if err != nil {
			t.Error(err)
		}
		for _, p := range problems {
			if strings.HasPrefix(p.Metric, "formsvc_") {
				t.Errorf("%s: %s: %s", name, p.Metric, p.Text)
			}
		}
	}
}

// console-link prints a link to the server that runs with the data directory, and says if none runs. The limits of the
// server hold for the pages and for the API.
func TestConsoleLinkCommand(t *testing.T) {
	t.Parallel()
	s := newShell(t).serve(t, "--max-keys", "1", "--max-campaigns", "1")
	leads := func(base string, doubt bool, flags ...string) string {
		t.Helper()
		r := s.try(t, append([]string{"console-link"}, flags...)...)
		if r.status != 0 || !regexp.MustCompile(`^`+regexp.QuoteMeta(base)+`/console/sign-in/\w{52}\n$`).MatchString(r.out) || strings.Contains(r.err, "No server runs here") != doubt {
			t.Errorf("%v: %+v, want a link to %s", flags, r, base)
		}
		return strings.TrimSpace(r.out)
	}
	link := leads(s.url, false)
	leads("https://forms.example.com", false, "--base-url", "https://forms.example.com/")
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar}
	contains(t, "the page after signing in", signedIn(t, browser, link), "Overview")
	contains(t, "a second key", posted(t, browser, s.url+"/console/keys", s.url+"/console/keys",
		url.Values{"name": {"second"}, "permissions": {"campaigns:read"}}), "at most 1 keys")
	s.campaign(t)
	s.call(t, http.StatusConflict, http.MethodPost, "/v1/campaigns", map[string]string{"title": "second"})
	lacks(t, "a used link", signedIn(t, new(http.Client), link), "Overview")
	s.stop()
	if _, err := os.Stat(filepath.Join(s.data, servingFile)); err == nil {
		t.Error("a server that has ended is still noted")
	}
	leads("http://127.0.0.1:8080", true)
	leads("http://localhost:9000", true, "--addr", ":9000")
	again := s.serve(t, "--base-url", "https://forms.example.com/api/")
	leads("https://forms.example.com/api", false)
	again.stop()
}

// Without --base-url the share page has the address that the browser used, and says so; with it, that one.
func TestAddressOfForms(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{"": "http://forms.lan:8080/f/", "https://forms.example.com/api": "https://forms.example.com/api/f/"} {
		var flags []string
		if base != "" {
			flags = []string{"--base-url", base}
		}
		s := newShell(t).serve(t, flags...)
		id := s.campaign(t)
		s.call(t, http.StatusOK, http.MethodPut, "/v1/campaigns/"+id, map[string]any{"title": "x", "form": map[string]any{"enabled": true}})
		ask := func(method, path string, form url.Values, cookies ...*http.Cookie) (*http.Response, string) {
			t.Helper()
			r := must(http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(form.Encode())))
			r.Host = "forms.lan:8080"
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			for _, c := range cookies {
				r.AddCookie(c)
			}
			reply := must(new(http.Transport).RoundTrip(r))
			defer func() { _ = reply.Body.Close() }()
			text := must(io.ReadAll(reply.Body))
			return reply, string(text)
		}
		link := strings.TrimSpace(s.try(t, "settings-link").out) // as the command was called before
		token := link[strings.LastIndexByte(link, '/')+1:]
		_, page := ask(http.MethodGet, "/console/sign-in/"+token, nil)
		form := url.Values{}
		for _, field := range regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			form.Set(field[1], field[2])
		}
		in, _ := ask(http.MethodPost, "/console/sign-in", form)
		_, page = ask(http.MethodGet, "/console/campaigns/"+id+"/share", nil, in.Cookies()...)
		if !strings.Contains(page, `tabindex="0">`+want) || strings.Contains(page, "No public address is set") != (base == "") || strings.Contains(page, "127.0.0.1") {
			t.Errorf("with %q: %d cookies, %s", base, len(in.Cookies()), page)
		}
		s.stop()
	}
}

// signedIn redeems a link in a browser, and returns the page that it leads to.
func signedIn(t testing.TB, browser *http.Client, link string) string {
	t.Helper()
	base, token, _ := strings.Cut(link, "/sign-in/")
	return posted(t, browser, link, base+"/sign-in", url.Values{"link": {token}})
}

// posted sends a form of a page, and returns the page that it leads to.
func posted(t testing.TB, browser *http.Client, page, action string, form url.Values) string {
	t.Helper()
	if m := regexp.MustCompile(`name="token" value="([^"]*)"`).FindStringSubmatch(fetchedBy(t, browser, page)); m != nil {
		form.Set("token", m[1])
	}
	resp := must(browser.PostForm(action, form))
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}

func fetchedBy(t testing.TB, browser *http.Client, url string) string {
	t.Helper()
	resp := must(browser.Get(url))
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}

// A server that stops ends the streams of open pages. Otherwise they would last for longer than this browser waits.
func TestStopEndsStreams(t *testing.T) {
	t.Parallel()
	sh, browser := newShell(t), new(http.Client)
	s := sh.serve(t)
	browser.Jar, _ = cookiejar.New(nil)
	signedIn(t, browser, strings.TrimSpace(sh.do(t, "settings-link")))
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	r := must(http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/console/campaigns/"+s.campaign(t)+"/live", nil))
	resp, err := browser.Do(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%+v, %v", resp, err)
	}
	defer resp.Body.Close()
	s.stop()
	if text, err := io.ReadAll(resp.Body); err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
