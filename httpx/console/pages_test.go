package console_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/console"
)

// hostiles returns texts that would do harm if a page didn't escape them.
func hostiles() []string {
	return []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'><svg/onload=alert(1)>`, `</textarea><script>alert(1)</script>`,
		`</title><script>alert(1)</script>`, `</style><script>alert(1)</script>`, `javascript:alert(1)`, `{{.}}`, `{{template "layout.html"}}`,
		`${alert(1)}`, `<!--`, `]]>`, `&lt;script&gt;`, `&#60;script&#62;`, "\u202egnp.exe", "a\u2028b\u2029c", `" onmouseover="alert(1)`,
		`' onfocus='alert(1)' autofocus='`, "`onclick=alert(1)`", `<iframe srcdoc="<script>alert(1)</script>">`, `<base href="https://evil.example/">`,
		`<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>`, `%3Cscript%3Ealert(1)%3C/script%3E`, `\"-alert(1)-\"`, `../../../etc/passwd`,
	}
}

// fill creates a record of every kind with these texts in every field, and returns the pages that show them.
func (w *world) fill(texts []string) []string {
	w.t.Helper()
	hook := w.hook(w.receiver(500, strings.Join(texts, "\n")))
	paths := []string{"/", "/keys", "/webhooks", "/webhooks/new", "/failures", "/campaigns", "/sign-in"}
	for _, text := range texts {
		campaign, err := w.svc.Campaigns.Create(w.t.Context(), w.account.ID,
			formsvc.CampaignInput{Title: text, Description: text, Modules: []formsvc.Module{{Name: text, Label: text}}})
		w.must(err)
		r, err := w.svc.Responses.Create(w.t.Context(), campaign.Key(), formsvc.ResponseInput{
			User: formsvc.User{Email: "ada@example.com", FirstName: text, LastName: text}, Answers: []formsvc.Answer{{Name: text, Value: []string{text}}},
		})
		w.must(err)
		_, err = w.svc.Files.Upload(w.t.Context(), r.Key(), formsvc.FileInput{Name: text, Module: text, Content: strings.NewReader(text)})
		w.must(err)
		_, err = w.svc.Comments.Create(w.t.Context(), r.Key(), formsvc.CommentInput{Body: text, Author: text})
		w.must(err)
		_, err = w.svc.Signatures.Create(w.t.Context(), r.Key(), formsvc.SignatureInput{Signer: r.User, Provider: text})
		w.must(err)
		_, err = w.svc.Keys.Create(w.t.Context(), w.account.ID, formsvc.KeyInput{Name: text, Permissions: formsvc.AllPermissions()})
		w.must(err)
		_, _, err = w.svc.Webhooks.Create(w.t.Context(), w.account.ID, formsvc.WebhookInput{
			URL: "https://example.com/" + url.PathEscape(text) + "?" + text, Events: []formsvc.EventType{"file.uploaded"}, CampaignID: campaign.ID, Disabled: true,
		})
		if !errors.Is(err, formsvc.ErrInvalid) { // as an address
			w.must(err)
		}
		path := "/campaigns/" + string(campaign.ID)
		paths = append(paths, path, path+"/summary", path+"?email="+url.QueryEscape(text)+"&reference="+url.QueryEscape(text), path+"/responses/"+string(r.ID))
	}
	w.drain()
	page := w.get("/webhooks/" + string(hook.ID))
	paths = append(paths, "/webhooks/"+string(hook.ID), "/webhooks/"+string(hook.ID)+"/edit", page.linkTo("/deliveries/"))
	for _, link := range w.get("/webhooks").links() {
		if strings.HasPrefix(link, "/webhooks/") {
			paths = append(paths, link)
		}
	}
	return paths
}

// I4, I6: whatever the store contains, a page has the same elements as with any other text, and its policy forbids
// everything else.
func TestHostileTextsAreEscaped(t *testing.T) {
	w := newSignedIn(t)
	for _, path := range w.fill(hostiles()) {
		a := w.get(path).is(200)
		for n := range a.page.Descendants() {
			checkElement(t, path, n)
		}
		for name, want := range map[string]string{
			"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		} {
			equal(t, a.header.Get(name), want, "%s: %s is %q", path, name)
		}
		equal(t, len(a.header.Get("X-Request-Id")), 26, "%s: X-Request-Id has %d characters", path)
	}
}

// ours lists the elements that pages consist of.
var ours = strings.Fields(`html head meta title link script body a header p nav ul li form input button main h1 h2 h3 section div span small
	table thead tbody tr th td code pre time figure figcaption svg g rect line details summary label select option textarea fieldset legend
	dl dt dd ol article datalist bdi use`)

func checkElement(t *testing.T, path string, n *html.Node) {
	t.Helper()
	if n.Type != html.ElementNode {
		return
	}
	if !slices.Contains(ours, n.Data) {
		t.Errorf("%s: <%s>", path, n.Data)
	}
	if n.Data == "script" && (n.FirstChild != nil || !strings.HasPrefix(attribute(n, "src"), "/admin/console/assets/console.js?")) {
		t.Errorf("%s: a script: %v %s", path, n.Attr, textOf(n))
	}
	for _, a := range n.Attr {
		if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "http-equiv" || a.Key == "autofocus" || a.Key == "srcdoc" {
			t.Errorf("%s: <%s %s=%q>", path, n.Data, a.Key, a.Val)
		}
		if (a.Key == "href" || a.Key == "src" || a.Key == "action") && !regexp.MustCompile(`^(/admin/console/|\?|#content$|mailto:[a-z]+@example\.com$)`).MatchString(a.Val) {
			t.Errorf("%s: <%s %s=%q>", path, n.Data, a.Key, a.Val)
		}
	}
}

// F1: records of another account aren't found, whatever the request.
func TestRecordsOfAnotherAccount(t *testing.T) {
	w := newSignedIn(t)
	mine := w.account
	theirs, err := w.svc.Accounts.Create(t.Context(), "theirs")
	w.must(err)
	w.account = theirs
	w.signIn()
	paths := w.fill([]string{"their own"})
	keys, err := w.svc.Keys.List(t.Context(), theirs.ID)
	w.must(err)
	var pages []*answer
	for _, path := range paths {
		page := w.get(path)
		pages = append(pages, page)
		paths = append(paths, slices.DeleteFunc(page.links(), func(link string) bool { return !strings.HasPrefix(link, "/files/") })...)
	}
	w.account = mine
	w.client = newClient(t)
	w.signIn()
	asked := 0
	for _, path := range paths {
		a := w.get(path)
		if strings.Count(path, "/") == 1 || path == "/webhooks/new" { // the same page of the own account
			a.is(200).lacks("their own")
			continue
		}
		a.is(404)
		asked++
	}
	own := w.get("/keys").form("/keys")
	for _, page := range pages {
		for n := range page.page.Descendants() {
			path, ok := strings.CutPrefix(attribute(n, "action"), "/admin/console")
			if n.Data != "form" || !ok || strings.Count(path, "/") < 2 || strings.HasPrefix(path, "/sign-in/") {
				continue
			}
			form := filled(n)
			form.Set("token", own.Get("token"))
			w.do("POST", path, form, func(r *http.Request) { r.Header.Set("Origin", w.server.URL) }).is(404)
			asked++
		}
	}
	w.do("POST", "/keys/"+string(keys[0].ID)+"/revoke", url.Values{"token": {own.Get("token")}}).is(404)
	if !strings.HasPrefix(paths[len(paths)-1], "/files/") || asked < 15 {
		t.Errorf("only %d requests, the last for %s", asked, paths[len(paths)-1])
	}
}

// Unknown pages get 404, and without a session 401.
func TestUnknownPagesGet404(t *testing.T) {
	w := newSignedIn(t)
	const none = "018f0000-0000-7000-8000-000000000000"
	for _, path := range []string{
		"/x", "/keys/", "/webhooks/" + none, "/webhooks/x", "/deliveries/" + none + "/body", "/campaigns/" + none + "/responses/" + none, "/files/" + none, "/assets/x",
	} {
		w.get(path).is(404)
	}
	w.do("PUT", "/keys", nil).is(404)
	for _, path := range []string{"//keys", "/assets/..", "/webhooks/../keys", "/./keys", "/keys/."} { // as some proxies pass them on
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.Path, r.RequestURI = path, path
		recorder := httptest.NewRecorder()
		if w.pages.ServeHTTP(recorder, r); recorder.Code != 404 || recorder.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s: %d %v", path, recorder.Code, recorder.Header())
		}
	}
	w.client = newClient(t)
	for _, path := range []string{"/", "/keys", "/webhooks/" + none, "/campaigns/" + none + "/export/responses.csv", "/files/" + none, "/failures"} {
		w.get(path).is(401).says("Sign in")
	}
}

// Links and forms stay below the pages' path, under any prefix, and on the same host.
func TestPrefixes(t *testing.T) {
	w := newWorld(t, nil)
	w.serve(&console.Options{Authenticate: func(*http.Request) (*console.Visitor, error) { return &console.Visitor{AccountID: w.account.ID}, nil }})
	for target, base := range map[string]string{
		"/keys": "", "/a/keys": "/a", "/a/b%2Fc/keys": "/a/b%2Fc", "//evil.example/keys": "", "/\\evil.example/keys": "", "/a//keys": "/a/",
	} {
		r := httptest.NewRequest("GET", "/keys", nil)
		r.RequestURI = target
		recorder := httptest.NewRecorder()
		w.pages.ServeHTTP(recorder, r)
		page, err := html.Parse(recorder.Body)
		if err != nil || recorder.Code != 200 {
			t.Fatalf("%s: %d %v", target, recorder.Code, err)
		}
		for n := range page.Descendants() {
			for _, a := range n.Attr {
				if (a.Key == "href" || a.Key == "action" || a.Key == "src") && !strings.HasPrefix(a.Val, base+"/") && !strings.HasPrefix(a.Val, "#") || strings.HasPrefix(a.Val, "//") {
					t.Errorf("%s: <%s %s=%q>, want it below %q", target, n.Data, a.Key, a.Val, base)
				}
			}
		}
	}
}

// The style sheet, the script and the icon are cached for good; a new version has a new address.
func TestAssets(t *testing.T) {
	w := newWorld(t, nil)
	for name, mediaType := range map[string]string{
		"console.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8", "console.svg": "image/svg+xml",
	} {
		a := w.get("/assets/" + name).is(200)
		if a.header.Get("Content-Type") != mediaType || !strings.Contains(a.header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %v", name, a.header)
		}
		w.do("HEAD", "/assets/"+name, nil).is(200)
		body := strings.ReplaceAll(a.body, "http://www.w3.org/2000/svg", "") // a namespace, which isn't loaded
		equal(t, regexp.MustCompile(`(?i)//[a-z0-9]|@import|url\(`).FindString(body), "", "%s has %q", name)
	}
}

// A failing store is told from a missing record. A link that couldn't be redeemed stays valid, so the log must not contain it.
func TestFailures(t *testing.T) {
	w := newSignedIn(t)
	token := w.link(w.account.ID)
	page := w.get("/sign-in/" + token)
	w.must(w.store.Close())
	w.submit(page, "/sign-in", nil).is(503)
	a := w.get("/keys?link="+token).is(503).says("The service is unavailable", "The server's log has details under")
	id := regexp.MustCompile(`under ([\w-]+)`).FindStringSubmatch(a.text())
	log := w.log.String()
	if id == nil || !strings.Contains(log, "requestId="+id[1]) || !strings.Contains(log, "store is closed") || strings.Contains(log, token) {
		t.Errorf("%s\n%s", a.text(), w.log)
	}
}
