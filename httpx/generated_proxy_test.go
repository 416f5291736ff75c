//go:build long

package httpx_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A proxyRun sends generated requests through prism, which validates requests and replies and forwards them anyway.
// .ci/judges/run starts everything.
type proxyRun struct {
	t       *testing.T
	direct  string // the address of the service
	proxy   string // of prism in front of it
	control string // of a prism whose document requires of every reply what none has
	client  *http.Client
	known   *records

	mu       sync.Mutex
	judged   int
	bypassed int
	found    map[string]int // violations in requests that were refused for them
	seen     *outcomes
}

// newProxyRun returns nil without a proxy.
func newProxyRun(t *testing.T) *proxyRun {
	t.Helper()
	p := &proxyRun{
		t: t, direct: os.Getenv("FORMSVC_TEST_SERVER"), proxy: os.Getenv("FORMSVC_TEST_PROXY"), control: os.Getenv("FORMSVC_TEST_CONTROL"),
		client: &http.Client{
			Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		found: map[string]int{}, seen: newOutcomes(),
	}
	if p.proxy == "" {
		return nil
	}
	k := strings.Split(os.Getenv("FORMSVC_TEST_KEYS"), ",")
	if len(k) != 3 || p.direct == "" || p.control == "" {
		t.Fatal("with FORMSVC_TEST_PROXY there must be FORMSVC_TEST_SERVER, FORMSVC_TEST_CONTROL and FORMSVC_TEST_KEYS: mine,other,weak")
	}
	p.known = newRecords(keys{k[0], k[1], k[2]})
	p.known.begin(func(key, method, path, contentType, body string) *answer {
		r := &generated{method: method, path: path, body: []byte(body), header: http.Header{}}
		for name, value := range map[string]string{
			"Authorization": "Bearer " + key, "Content-Type": contentType, "Content-Disposition": "attachment; filename=a.txt",
		} {
			r.header.Set(name, value)
		}
		return p.send(p.direct, r)
	})
	return p
}

// send sends a request. If that fails, the status is 0.
func (p *proxyRun) send(to string, r *generated) *answer {
	a := &answer{tb: p.t, what: r.method + " " + r.path}
	request, err := http.NewRequest(r.method, to+r.target(), bytes.NewReader(r.text()))
	if err != nil {
		p.t.Error(err)
		return a
	}
	request.Header = r.header.Clone()
	response, err := p.client.Do(request)
	if err != nil {
		p.t.Errorf("%v: %s", err, r)
		return a
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Errorf("%v: %s", err, r)
	}
	a.status, a.header, a.body = response.StatusCode, response.Header, string(body)
	return a
}

func (p *proxyRun) run() {
	c := theContract(p.t)
	p.tryControl(c)
	var workers sync.WaitGroup
	for i := range uint64(8) {
		workers.Go(func() {
			g := newGenerator(c, p.known, *generatedSeed+i)
			g.passed = true
			for p.more() {
				p.one(g)
			}
		})
	}
	workers.Wait()
	p.seen.check(p.t, c, true)
	found, _ := json.Marshal(p.found)
	p.t.Logf("prism judged %d, %d more went to the service itself; it found these in requests that were refused: %s", p.judged, p.bypassed, found)
	if p.judged < *proxiedCount || p.bypassed > p.judged/10 {
		p.t.Errorf("prism judged %d requests, want %d and %d more at most", p.judged, *proxiedCount, p.judged/10)
	}
}

// more reports whether more requests are needed and useful.
func (p *proxyRun) more() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.judged < *proxiedCount && p.seen.wrong < tooWrong
}

// one sends a request and checks it and the reply with prism.
func (p *proxyRun) one(g *generator) {
	r := g.next()
	to := p.proxy
	if r.exact {
		to = p.direct
	}
	a := p.send(to, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.operation.id == "exportResponsesAsCsv" && strings.Contains(a.body, "Premature close") {
		p.bypassed++ // the reply added a module without a column, so the service cut the table off
		return
	}
	if a.status == 0 || a.header.Get("X-Request-Id") == "" {
		p.seen.wrong = tooWrong // the service may have stopped
		p.t.Errorf("prism answered itself: %s\n%d %.500s", r, a.status, a.body)
		return
	}
	p.known.learnFrom(r, a)
	p.seen.count(p.t, r, a)
	if r.exact {
		p.bypassed++
		return
	}
	p.judged++
	p.judge(r, a)
}

// A violation is an error that prism reports.
type violation struct {
	Location []string `json:"location"`
	Code     any      `json:"code"`
	Message  string   `json:"message"`
}

// violations returns the errors that prism reported. The last one may be missing if there are many.
func violations(t *testing.T, a *answer) (list []violation) {
	t.Helper()
	text, cut := strings.CutPrefix(a.header.Get("Sl-Violations"), "Too many violations! ")
	decoder := json.NewDecoder(strings.NewReader(text))
	if text == "" {
		return nil
	}
	_, err := decoder.Token()
	for err == nil && decoder.More() {
		var v violation
		if err = decoder.Decode(&v); err == nil {
			list = append(list, v)
		}
	}
	if err != nil && !cut {
		t.Errorf("sl-violations: %v: %s", err, text)
	}
	return list
}

// judge evaluates prism's report.
func (p *proxyRun) judge(r *generated, a *answer) {
	inRequest := false
	for _, v := range violations(p.t, a) {
		request := len(v.Location) > 0 && v.Location[0] == "request"
		what := fmt.Sprintf("%s %v %s", strings.Join(v.Location[:min(2, len(v.Location))], "."), v.Code, r.operation.id)
		switch {
		case mistaken(r, v):
			continue
		case request && a.status >= http.StatusBadRequest:
			inRequest = true
			p.found[strings.TrimSuffix(what, " "+r.operation.id)]++
			continue
		case request:
			what = "prism would have refused it: " + what
		default:
			what = "prism says that the answer is wrong: " + what
		}
		p.seen.wrong++
		p.t.Errorf("%s: %s\n%s\n%d %v %.1000s", what, v.Message, r, a.status, a.header, a.body)
	}
	if len(r.mutations) == 1 && r.mutations[0].seen && !inRequest {
		p.seen.wrong++
		p.t.Errorf("prism didn't see it: %s\n%d %v %.500s", r, a.status, a.header, a.body)
	}
}

// mistaken reports whether prism is wrong.
func mistaken(r *generated, v violation) bool {
	// Prism takes an empty body for none, but a file may be empty.
	return r.operation.id == "uploadFile" && len(r.body) == 0 && v.Message == "Body parameter is required"
}

// tryControl checks that prism validates the replies of every operation.
func (p *proxyRun) tryControl(c *contract) {
	p.t.Helper()
	g := newGenerator(c, p.known, *generatedSeed)
	g.passed = true
	for i := range 10 * len(c.operations) {
		o := c.operations[i%len(c.operations)]
		r := g.valid(o)
		a := p.send(p.control, r)
		list := violations(p.t, a)
		wanting := []string{"header"}
		if mediaType := a.header.Get("Content-Type"); mediaType == "application/json" || mediaType == "application/problem+json" {
			wanting = append(wanting, "body")
		}
		for _, missing := range wanting {
			if !slices.ContainsFunc(list, func(v violation) bool {
				return v.Location[0] == "response" && v.Location[1] == missing && v.Code == "required" &&
					strings.Contains(strings.ToLower(v.Message), "neversent")
			}) {
				p.t.Fatalf("prism doesn't miss what is missing in the %s: %s\n%d %v %.500s", missing, r, a.status, a.header, a.body)
			}
		}
	}
}
