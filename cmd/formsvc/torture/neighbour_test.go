package torture_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	goclient "github.com/formsvc/toolkit/httpx/client"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
	"github.com/formsvc/toolkit/webhook"
)

const (
	// memoryOfServer is how much memory a server may take, whatever one account does, in bytes.
	memoryOfServer = 512 << 20
	// victimFor is how long the victim works beside each attack, and alone before them.
	victimFor = 3 * time.Second
	// victimP99 is how long the victim's requests may take at the 99th percentile, unless three times as long as alone is longer.
	victimP99 = 60 * time.Millisecond
)

// A neighbourhood is a server with two accounts.
type neighbourhood struct {
	target
	server   *process
	tls      bool // whether it speaks TLS, and so HTTP/2
	victim   *client
	theirs   string    // address of the victim's responses
	receiver *receiver // of the victim's events
	ownForm  string    // address of the victim's form with a file
	created  int       // responses of the victim
}

// A target is what an attacker has: a key, and addresses.
type target struct {
	Key, Server    string
	List, Many     string // of responses: large ones, and many
	Response, File string // of one of the large responses, and of a file
	Hook, Form     string // of a webhook, and of a public form
	Asks, Files    string // of forms with questions whose texts become long in HTML, and with a file
	Console        string // of the console's pages of the campaign Many
	Cookie         string // of a session there

	client *client
}

func newNeighbourhood(t *testing.T, s setup) *neighbourhood {
	s.data, s.flags = t.TempDir(), nodeFlags
	if s.tls {
		s.flags = append(s.flags[:len(s.flags):len(s.flags)], certificate(t)...)
	}
	n := &neighbourhood{server: s.start(t), receiver: newReceiver(t), tls: s.tls}
	if s.tls {
		n.server.url = strings.Replace(n.server.url, "http:", "https:", 1)
	}
	n.Key, n.Server = n.server.firstKey(t), n.server.url
	attacker := newClient(t, n.Key)
	api := attacker.api(n.Server)
	s.command(t, "accounts", "create", "victim")
	s.command(t, "webhooks", "create", "--account", "victim", "--url", n.receiver.url, "--events", "response.created",
		"--secret", secret, "--webhook-allow", "127.0.0.0/8")
	key := strings.TrimSpace(s.command(t, "keys", "create", "--account", "victim", "--name", "v", "--permissions", "all"))
	n.victim = newClient(t, key)
	published := func(c *goclient.Client, requireEmail bool, modules ...formsvc.Module) goclient.Campaign {
		return must(c.Campaigns.Create(t.Context(), goclient.CampaignInput{
			Title: "t", RequireEmail: &requireEmail, Modules: modules, Form: goclient.Form{Form: formsvc.Form{Enabled: true}},
		}))
	}
	responses := func(c goclient.Campaign) string { return n.Server + "/v1/campaigns/" + c.UUID + "/responses" }
	form := func(c goclient.Campaign) string { return n.Server + "/f/" + c.Form.Token }
	victim, file := n.victim.api(n.Server), formsvc.Module{Name: "f", Type: formsvc.FileModule}
	large, many := published(api, true), published(api, true)
	n.List, n.Many, n.theirs = responses(large), responses(many), responses(published(victim, true))
	n.Form, n.Files, n.ownForm = form(many), form(published(api, false, file)), form(published(victim, false, file))
	n.Asks = form(published(api, false, formsvc.Module{Name: "q", Label: strings.Repeat("'", 1000), Multiple: true}, formsvc.Module{Name: "u", Type: formsvc.URLModule}))
	n.Console = n.Server + "/console/campaigns/" + many.UUID
	n.Cookie = n.signIn(t, s.command(t, "console-link"))
	for range 40 {
		n.Response = n.List + "/" + attacker.made(t, n.List, submission(500_000))
	}
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			for range 1000 {
				_, _ = attacker.do(t.Context(), http.MethodPost, n.Many, []byte(submission(10)), nil)
			}
		})
	}
	group.Wait()
	upload := goclient.Upload{Name: "a", Content: bytes.NewReader(make([]byte, 20<<20))}
	n.File = n.Server + "/v1/files/" + must(api.Files.Upload(t.Context(), large.UUID, path.Base(n.Response), upload)).UUID
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connects, and never responds
	noError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	hook := goclient.WebhookInput{URL: "http://" + silent.Addr().String(), Events: []formsvc.EventType{webhook.ResponseCreated}, Secret: secret}
	n.Hook = n.Server + "/v1/webhooks/" + must(api.Webhooks.Create(t.Context(), hook)).UUID
	return n
}

// signIn redeems a link to the console and returns the cookie of the session.
func (n *neighbourhood) signIn(t *testing.T, link string) string {
	t.Helper()
	token := link[strings.LastIndex(link, "/sign-in/")+len("/sign-in/"):]
	browser := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{TLSClientConfig: anyCertificate()},
	}
	r := must(http.NewRequestWithContext(t.Context(), http.MethodPost, n.Server+"/console/sign-in", strings.NewReader("link="+strings.Fields(token)[0])))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp := must(browser.Do(r))
	_ = resp.Body.Close()
	if len(resp.Cookies()) == 0 {
		t.Fatalf("signing in: %s", resp.Status)
	}
	return resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value
}

func submission(size int) string {
	return `{"user":{"email":"v@example.com"},"responses":{"a":{"value":["` + strings.Repeat("x", size) + `"]}}}`
}

// An attack is what one connection of an account does over and over.
type attack struct {
	name  string
	conns int
	run   func(x *target, ctx context.Context)
}

// unread sends a request and doesn't read the reply.
func unread(name string, conns int, address func(*target) string) attack {
	return attack{name, conns, func(x *target, ctx context.Context) { x.raw(ctx, "GET "+address(x), nil, 0) }}
}

// asking sends requests and reads the replies.
func asking(name string, conns int, method string, address func(*target) string, body string, header map[string]string) attack {
	sent := []byte(body)
	return attack{name, conns, func(x *target, ctx context.Context) {
		_, _ = x.client.do(ctx, method, address(x), sent, header)
	}}
}

// streams opens one connection with as many streams as it may have. Each sends a part of a long body, and then nothing.
func streams(name string, conns int, address func(*target) string, mediaType, part string) attack {
	return attack{streamed + name, conns, func(x *target, ctx context.Context) {
		short, stop := context.WithTimeout(ctx, 10*time.Second)
		defer stop()
		transport := &http.Transport{TLSClientConfig: anyCertificate(), HTTP2: &http.HTTP2Config{StrictMaxConcurrentRequests: true}, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		alone := &client{key: x.Key, http: &http.Client{Transport: transport}, discard: true}
		if _, err := alone.do(short, http.MethodGet, x.Server+"/healthz", nil, nil); err != nil { // connects once, since each stream would
			return
		}
		var all sync.WaitGroup
		for range 20 { // as many as the server allows
			all.Go(func() {
				for short.Err() == nil {
					x.stream(short, transport, address(x), mediaType, part)
				}
			})
		}
		all.Wait()
	}}
}

// stream sends a part of a long body and waits for the reply.
func (x *target) stream(ctx context.Context, on http.RoundTripper, address, mediaType, part string) {
	rest, silent := io.Pipe()
	defer context.AfterFunc(ctx, func() { _ = silent.Close() })()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, io.MultiReader(strings.NewReader(part), rest))
	if err != nil {
		return
	}
	r.ContentLength = 3_900_000
	r.Header = http.Header{
		"Authorization": {"Bearer " + x.Key}, "Content-Type": {mediaType}, "X-Forwarded-For": {fmt.Sprint("10.8.", rand.N(256), ".", rand.N(256))},
	}
	if resp, err := on.RoundTrip(r); err == nil {
		_ = resp.Body.Close()
	}
	_ = rest.Close()
}

// streamed begins the names of attacks that need HTTP/2.
const streamed = "streams of "

// attacks are what an account can do with one key.
func attacks() []attack {
	large := submission(3_900_000)
	part := []byte(large)
	many := func(query string) func(*target) string {
		return func(x *target) string { return x.Many + query }
	}
	lists := func(x *target) string { return x.List + "?limit=1000" }
	wrong := `{"user":{"email":"v@example.com"},"responses":{` + strings.TrimSuffix(strings.Repeat(`"a":{"value":[1]},`, 100_000), ",") + `}}`
	return []attack{
		unread("unread lists", 400, lists),
		unread("unread exports", 400, func(x *target) string { return x.List + ".ndjson" }),
		unread("unread feed", 400, func(x *target) string { return x.Server + "/v1/events?limit=1000" }),
		unread("unread downloads", 600, func(x *target) string { return x.File }),
		{"bodies that stop", 400, func(x *target, ctx context.Context) { x.raw(ctx, "POST "+x.List, part, 4_000_000) }},
		{"uploads that stop", 600, func(x *target, ctx context.Context) { x.raw(ctx, "POST "+x.Response+"/files", part, 90_000_000) }},
		{"idle connections", 2000, func(x *target, ctx context.Context) { x.raw(ctx, "GET "+x.Server+"/healthz", nil, 1) }},
		asking("lists of large responses", 64, http.MethodGet, lists, "", nil),
		asking("growing responses", 32, http.MethodPatch, func(x *target) string { return x.Response }, large, nil),
		asking("large responses", 32, http.MethodPost, func(x *target) string { return x.List }, large, nil),
		asking("wrong bodies", 32, http.MethodPost, func(x *target) string { return x.List }, wrong, nil),
		asking("creates", 128, http.MethodPost, many(""), submission(10), nil), // with unanswered deliveries
		asking("replays", 64, http.MethodPost, many(""), submission(10), map[string]string{"Idempotency-Key": "k"}),
		asking("changes of one record", 64, http.MethodPatch, func(x *target) string { return x.Response }, `{"user":{"firstName":"x"}}`, nil),
		asking("unknown addresses", 64, http.MethodGet, many("?email=nobody@example.com"), "", nil),
		asking("unknown statuses", 64, http.MethodGet, many("?status=never&status=none"), "", nil),
		asking("late changes", 64, http.MethodGet, many("?updatedAfter=2100-01-01T00:00:00Z"), "", nil),
		asking("deep offsets", 64, http.MethodGet, many("?offset=30000&limit=1"), "", nil),
		asking("exports", 64, http.MethodGet, many(".csv"), "", nil),
		asking("campaigns", 64, http.MethodPost, func(x *target) string { return x.Server + "/v1/campaigns" },
			`{"title":"t","description":"`+strings.Repeat("x", 5000)+`","metadata":{"a":"`+strings.Repeat("x", 500)+`"}}`, nil),
		asking("redeliveries", 16, http.MethodPost, func(x *target) string { return x.Hook + "/redeliver" }, `{"since":"2020-01-01T00:00:00Z"}`, nil),
		asking("deliveries' lists", 64, http.MethodGet, func(x *target) string { return x.Hook + "/deliveries?limit=1000" }, "", nil),
		{"unknown keys", 64, func(x *target, ctx context.Context) {
			other := &client{key: "formsvc_" + strings.Repeat("x", 49), http: x.client.http, discard: true}
			_, _ = other.do(ctx, http.MethodGet, x.Server+"/v1/me", nil, nil)
		}},
		{"bots", 64, func(x *target, ctx context.Context) {
			header := map[string]string{
				"Content-Type": "application/x-www-form-urlencoded", "X-Forwarded-For": fmt.Sprint("10.0.", rand.N(256), ".", rand.N(256)),
			}
			_, _ = x.client.do(ctx, http.MethodPost, x.Form, []byte("email=b@example.com&_honeypot=x"), header)
		}},
		posting("errors with long texts, unread", 200, func(x *target) string { return x.Asks }, urlencoded, strings.Repeat("q=1&", 4090)+"u=x", 0),
		posting("long errors, unread", 64, func(x *target) string { return x.Asks }, urlencoded, "u="+strings.Repeat("%22", 1_300_000), 0),
		posting("long names", 8, func(x *target) string { return x.Files }, multipartForm, longNames(), 0),
		posting("long headers", 8, func(x *target) string { return x.Files }, multipartForm,
			"--x\r\nContent-Disposition: form-data; name=\"a\"\r\nX: "+strings.Repeat("x", 10_000_000)+"\r\n\r\n", 0),
		posting("heads of files", 400, func(x *target) string { return x.Files }, multipartForm, "", 50_000_000),
		posting("files that stop", 400, func(x *target) string { return x.Files }, multipartForm, filePart("f", 40<<10), 50_000_000),
		posting("files for no question", 16, func(x *target) string { return x.Asks }, multipartForm, filePart("x", 50<<20), 0),
		posting("files", 16, func(x *target) string { return x.Files }, multipartForm, filePart("f", 20<<20), 0),
		posting("long forms", 16, func(x *target) string { return x.Form }, urlencoded, "a="+strings.Repeat("x", 3_900_000), 0),
		posting("random names", 64, func(x *target) string { return x.Form }, urlencoded, randomNames(), 0),
		browsing("live pages", 300, "/live"),
		browsing("searches for nothing", 48, "?search=nothing+of+it"),
		browsing("summaries", 16, "/summary"),
		asking("guessed links", 64, http.MethodGet, func(x *target) string { return x.Server + "/console/sign-in/" + strings.Repeat("A", 52) }, "", nil),
		streams("bodies that stop", 64, func(x *target) string { return x.List }, "application/json", large[:200_000]),
		streams("short bodies that stop", 64, func(x *target) string { return x.List }, "application/json", large[:10_000]),
		streams("forms that stop", 64, func(x *target) string { return x.Form }, urlencoded, "a="+strings.Repeat("x", 200_000)),
		streams("short forms that stop", 64, func(x *target) string { return x.Form }, urlencoded, "a="+strings.Repeat("x", 10_000)),
		asking("readiness", 64, http.MethodGet, func(x *target) string { return x.Server + "/readyz" }, "", nil),
	}
}

// The media types of forms.
const (
	urlencoded    = "application/x-www-form-urlencoded"
	multipartForm = "multipart/form-data; boundary=x"
)

// posting sends a form from one address of a few, and doesn't read the reply. A length that isn't 0 is announced in place of the body's.
func posting(name string, conns int, address func(*target) string, mediaType, body string, length int) attack {
	return attack{name, conns, func(x *target, ctx context.Context) {
		header := fmt.Sprintf("Content-Type: %s\r\nX-Forwarded-For: 10.9.0.%d\r\n", mediaType, rand.N(5))
		short, stop := context.WithTimeout(ctx, 10*time.Second)
		defer stop()
		x.send(short, "POST "+address(x), header, []byte(body), cmp.Or(length, len(body)))
	}}
}

// browsing opens a page of the console, and reads it to its end.
func browsing(name string, conns int, page string) attack {
	return attack{name, conns, func(x *target, ctx context.Context) {
		_, _ = x.client.do(ctx, http.MethodGet, x.Console+page, nil, map[string]string{"Cookie": x.Cookie})
	}}
}

func filePart(name string, size int) string {
	return "--x\r\nContent-Disposition: form-data; name=\"" + name + "\"; filename=\"a\"\r\n\r\n" + strings.Repeat("x", size) + "\r\n--x--\r\n"
}

func longNames() string {
	var b strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&b, "--x\r\nContent-Disposition: form-data; name=\"%d%s\"\r\n\r\n1\r\n", i, strings.Repeat("n", 40_000))
	}
	return b.String() + "--x--\r\n"
}

func randomNames() string {
	var b strings.Builder
	for range 1_000 {
		fmt.Fprintf(&b, "n%d=1&", rand.N(1_000_000_000))
	}
	return b.String()
}

// One account attacks the server over many connections, while another works. No request of the other fails or waits for long, all its
// events are delivered, and the memory of the server stays bounded.
func TestBadNeighbour(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { newNeighbourhood(t, setup{dsn: sqliteDSN(t)}).attacked(t) })
	t.Run("postgres", func(t *testing.T) { newNeighbourhood(t, setup{dsn: postgrestest.DSN(t)}).attacked(t) })
	t.Run("sqlite over TLS", func(t *testing.T) { newNeighbourhood(t, setup{dsn: sqliteDSN(t), tls: true}).attacked(t) })
	t.Run("postgres over TLS", func(t *testing.T) { newNeighbourhood(t, setup{dsn: postgrestest.DSN(t), tls: true}).attacked(t) })
}

func (n *neighbourhood) attacked(t *testing.T) {
	alone := n.work(t)
	t.Logf("p99 of the victim alone %v", alone)
	for _, a := range attacks() {
		if n.tls != strings.HasPrefix(a.name, streamed) {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			stop := n.attack(t, a.name)
			before := n.created
			_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", n.server.cmd.Process.Pid), []byte("5"), 0) // begins a new peak
			p99 := n.work(t)
			stop()
			waitFor(t, "all events of the victim are delivered", func() bool {
				return n.receiver.accepted() == n.created
			})
			peak := n.peak(t)
			t.Logf("%d responses of the victim, p99 %v; peak of memory %d MiB", n.created-before, p99, peak>>20)
			if peak > memoryOfServer {
				t.Errorf("the server took %d MiB, at most %d may be", peak>>20, memoryOfServer>>20)
			}
			if limit := max(victimP99, 3*alone); p99 > limit {
				t.Errorf("p99 of the victim is %v, alone %v", p99, alone)
			}
		})
	}
}

// work creates, reads and lists responses of the victim for a time, none of which may fail. It returns the 99th percentile of the times
// that requests took.
func (n *neighbourhood) work(t *testing.T) time.Duration {
	t.Helper()
	var took []time.Duration
	ask := func(address string) {
		began := time.Now()
		if a, err := n.victim.do(t.Context(), http.MethodGet, address, nil, nil); err != nil || a.status != http.StatusOK {
			t.Fatalf("GET %s: %v, %d %.200s", address, err, a.status, a.body)
		}
		took = append(took, time.Since(began))
	}
	for end := time.Now().Add(victimFor); time.Now().Before(end); n.created++ {
		began := time.Now()
		uuid := n.victim.made(t, n.theirs, submission(100))
		took = append(took, time.Since(began))
		ask(n.theirs + "/" + uuid)
		ask(n.theirs + "?limit=20")
		header := map[string]string{"Content-Type": multipartForm, "X-Forwarded-For": fmt.Sprint("192.0.", rand.N(256), ".", rand.N(256)), "Accept": "application/json"}
		if a, err := n.victim.do(t.Context(), http.MethodPost, n.ownForm, []byte(filePart("f", 20_000)), header); err != nil || a.status != http.StatusCreated {
			t.Fatalf("the form with a file: %v, %d %.300s", err, a.status, a.body)
		}
		n.created++
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

// attack has another process attack, so that it takes the processors from the server alone.
func (n *neighbourhood) attack(t *testing.T, name string) (stop func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), attackVariable+"="+name), os.Stderr
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		err = json.NewEncoder(stdin).Encode(n.target)
	}
	noError(t, err)
	return func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}
}

// attackVariable names the attack of a process.
const attackVariable = "FORMSVC_TORTURE_ATTACK"

// attackUntilEOF attacks the target that standard input has, until it ends.
func attackUntilEOF(name string) {
	x := target{client: &client{http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}, discard: true}}
	input := bufio.NewReader(os.Stdin)
	line, err := input.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &x)
	}
	if err != nil {
		log.Fatal(err)
	}
	x.client.key = x.Key
	ctx, stop := context.WithCancel(context.Background())
	all := attacks()
	a := all[slices.IndexFunc(all, func(a attack) bool { return a.name == name })]
	for range a.conns {
		go func() {
			for {
				a.run(&x, ctx)
			}
		}()
	}
	_, _ = input.ReadByte()
	stop()
}

// raw sends a request of the API with a part of its body, and reads nothing.
func (x *target) raw(ctx context.Context, request string, part []byte, length int) {
	x.send(ctx, request, "Authorization: Bearer "+x.Key+"\r\nContent-Type: application/json\r\n", part, length)
}

// send sends a request with a part of its body, and reads nothing until ctx ends.
func (x *target) send(ctx context.Context, request, header string, part []byte, length int) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(x.Server, "http://"))
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	_, _ = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n", request, header, length)
	_, _ = conn.Write(part)
	<-ctx.Done()
}

// anyCertificate makes a client trust the server.
func anyCertificate() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// certificate writes a certificate and its key to files, and returns the flags for them.
func certificate(t *testing.T) []string {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pair := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	files := []string{filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")}
	noError(t, errors.Join(err, os.WriteFile(files[0], pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o600),
		os.WriteFile(files[1], pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600)))
	return []string{"--tls-cert", files[0], "--tls-key", files[1]}
}

// peak returns the most memory that the server has taken since its start, in bytes.
func (n *neighbourhood) peak(t *testing.T) (kb int) {
	t.Helper()
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.server.cmd.Process.Pid))
	_, value, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(value, &kb); err != nil {
		t.Fatalf("needs /proc: %v", err)
	}
	return kb << 10
}
