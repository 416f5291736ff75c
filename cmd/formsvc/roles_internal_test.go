package main

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

// A member is the browser of a person on one of the nodes of a service, which change with each request.
type member struct {
	*http.Client

	t     testing.TB
	nodes []*service
	turn  int
}

func newMember(t testing.TB, nodes ...*service) *member {
	jar, _ := cookiejar.New(nil)
	return &member{&http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, t, nodes, 0}
}

// ask makes a request, and returns the status and the text. Cookies are for the host, so all nodes get them.
func (m *member) ask(method, path string, form url.Values) (int, string) {
	m.t.Helper()
	m.turn++
	r := must(http.NewRequestWithContext(m.t.Context(), method, m.nodes[m.turn%len(m.nodes)].url+"/console"+path, strings.NewReader(form.Encode())))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp := must(m.Do(r))
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// submit sends a form with the token of a page.
func (m *member) submit(page, path string, form url.Values) (int, string) {
	m.t.Helper()
	_, text := m.ask(http.MethodGet, page, nil)
	if found := regexp.MustCompile(`name="token" value="([^"]*)"`).FindStringSubmatch(text); found != nil {
		form.Set("token", found[1])
	}
	return m.ask(http.MethodPost, path, form)
}

// redeem signs in by the link in a text.
func (m *member) redeem(text string) {
	m.t.Helper()
	token := regexp.MustCompile(`/console/sign-in/([-\w]{52,54})`).FindStringSubmatch(text)
	if status, page := m.submit("/sign-in/"+token[1], "/sign-in", url.Values{"link": {token[1]}}); status != http.StatusSeeOther {
		m.t.Fatalf("sign in: %d %s", status, page)
	}
}

// crawl returns what a person finds, from the overview on: links, and forms. Each is a method and a path without query.
func (m *member) crawl() map[string]bool {
	m.t.Helper()
	found := map[string]bool{}
	for next := []string{"/"}; len(next) > 0 && len(found) < 200; next = next[1:] {
		status, text := m.ask(http.MethodGet, next[0], nil)
		equal(m.t, status, http.StatusOK, "a link leads to %s: %d", next[0])
		note := func(method, address string) {
			path, ours := strings.CutPrefix(address, "/console")
			path, _, _ = strings.Cut(path, "?")
			if !ours || strings.HasPrefix(path, "/assets/") || found[method+" "+path] {
				return
			}
			found[method+" "+path] = true
			if method == http.MethodGet && !strings.HasSuffix(path, "/live") && !strings.Contains(path, "/export/") && !strings.HasPrefix(path, "/files/") && !strings.HasSuffix(path, "/body") {
				next = append(next, path)
			}
		}
		page := must(html.Parse(strings.NewReader(text)))
		for n := range page.Descendants() {
			for _, a := range n.Attr {
				switch {
				case a.Key == "href", a.Key == "data-live":
					note(http.MethodGet, a.Val)
				case a.Key == "action" && strings.Contains(text, `method="post" action="`+a.Val+`"`):
					note(http.MethodPost, a.Val)
				}
			}
		}
	}
	return found
}

// Each role finds exactly the pages and forms of an admin that it isn't refused, on every node of each store. A form without a token changes nothing.
func TestRoles(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { testRoles(t, newShell(t).serve(t)) })
	t.Run("Postgres", func(t *testing.T) {
		sh := onPostgres(t)
		testRoles(t, sh.serve(t), sh.serve(t))
	})
}

func testRoles(t *testing.T, nodes ...*service) {
	t.Parallel()
	s := nodes[0]
	hook := s.hook(t, receive(t).URL(), "all")
	campaign := s.campaign(t)
	s.call(t, http.StatusCreated, http.MethodPost, responses(campaign)+"/"+s.submit(t, campaign)+"/files", []byte("x"))
	s.record(t, "webhooks", "test", hook)

	ada := newMember(t, nodes...)
	ada.redeem(s.out.String())
	if status, text := ada.submit("/you", "/you", url.Values{"email": {"ada@example.com"}, "name": {"Ada"}}); status != http.StatusSeeOther {
		t.Fatalf("becoming a member: %d %s", status, text)
	}
	roles := map[string]*member{"admin": ada}
	for _, role := range []string{"editor", "reviewer", "viewer"} {
		_, text := ada.submit("/people", "/people", url.Values{"email": {role + "@example.com"}, "name": {role}, "role": {role}})
		roles[role] = newMember(t, nodes...)
		roles[role].redeem(text)
	}
	all := ada.crawl()
	for role, m := range roles {
		shown, refused := m.crawl(), 0
		for _, target := range slices.Sorted(maps.Keys(all)) {
			method, path, _ := strings.Cut(target, " ")
			_, text := m.ask(method, path+"?once=1", nil)
			lacking := strings.Contains(text, "You lack the permission")
			if lacking == shown[target] {
				t.Errorf("%s: refused %s: %t, though shown: %t", role, target, lacking, shown[target])
			}
			if lacking {
				refused++
			}
		}
		if want := map[string][2]int{"admin": {0, 0}, "editor": {8, 20}, "reviewer": {25, 60}, "viewer": {20, 50}}[role]; refused < want[0] || refused > want[1] {
			t.Errorf("%s is refused %d of %d", role, refused, len(all))
		}
	}
	testRemoval(t, ada, roles["viewer"])
}

// testRemoval removes a person who has a page open. The page's stream, on any node, ends within two seconds.
func testRemoval(t *testing.T, ada, viewer *member) {
	t.Helper()
	var campaign string
	for target := range viewer.crawl() {
		if strings.HasSuffix(target, "/live") && strings.HasPrefix(target, "GET /campaigns/") {
			campaign = strings.TrimPrefix(target, "GET ")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second) // a stream that nobody ends lasts for 20 seconds
	defer cancel()
	var streams []io.ReadCloser
	for _, node := range viewer.nodes {
		r := must(http.NewRequestWithContext(ctx, http.MethodGet, node.url+"/console"+campaign, nil))
		resp := must(viewer.Do(r))
		equal(t, resp.StatusCode, http.StatusOK, "the stream of %s: %d", campaign)
		streams = append(streams, resp.Body)
	}
	_, people := ada.ask(http.MethodGet, "/people", nil)
	id := regexp.MustCompile(`(?s)viewer@example.com.*?action="/console(/people/[-0-9a-f]{36})"`).FindStringSubmatch(people)
	if status, text := ada.submit("/people", id[1]+"/remove", url.Values{}); status != http.StatusSeeOther {
		t.Fatalf("removing: %d %s", status, text)
	}
	for _, body := range streams {
		if _, err := io.ReadAll(body); err != nil {
			t.Errorf("the stream of a removed person goes on: %v", err)
		}
		_ = body.Close()
	}
	for range viewer.nodes {
		status, _ := viewer.ask(http.MethodGet, "/", nil)
		equal(t, status, http.StatusUnauthorized, "a removed person gets %d")
	}
}
