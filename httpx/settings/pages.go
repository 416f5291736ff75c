package settings

import (
	"fmt"
	"hash/crc32"
	"html/template"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/formsvc/toolkit/formsvc"
)

// pages are the templates, by the name of the page.
type pages map[string]*template.Template

// sections are the entries of the menu that pages belong to, by the name of the page.
var sections = map[string]string{ //nolint:gochecknoglobals // immutable
	"overview": "/", "keys": "/keys", "key-made": "/keys",
	"webhooks": "/webhooks", "webhook": "/webhooks", "webhook-form": "/webhooks", "secret": "/webhooks", "delivery": "/webhooks",
	"failures": "/failures", "campaigns": "/campaigns", "campaign": "/campaigns", "response": "/campaigns",
	"sign-in": "", "refused": "",
}

// A page is what every template is given.
type page struct {
	Base, Name, Title, Section string
	Who                        string // "" when nobody is signed in
	SignsOut                   bool
	Token, Once                string // of forms
	Note                       string // what the last form did
	Wrong                      map[string]string
	Version                    string // of the style sheet and the script
	Data                       any
}

// parsePages reads the templates: a page each, within the same layout.
func parsePages() (pages, error) {
	layout, err := template.New("layout.html").Funcs(template.FuncMap{
		"iso": isoTime, "utc": utcTime, "short": short, "thousands": thousands, "bytes": byteCount, "list": list, "pairs": pairs,
		"outcome": outcome,
	}).ParseFS(templates, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, err
	}
	parsed := pages{}
	for name := range sections {
		t, err := layout.Clone()
		if err != nil {
			return nil, err
		}
		if parsed[name], err = t.ParseFS(templates, "templates/"+name+".html"); err != nil {
			return nil, err
		}
	}
	return parsed, nil
}

// assetVersion changes with the style sheet or the script, so that browsers may keep
// them for good.
func assetVersion() string {
	sum := crc32.NewIEEE()
	for _, name := range []string{"settings.css", "settings.js"} {
		b, _ := assets.ReadFile("assets/" + name) // embedded
		_, _ = sum.Write(b)
	}
	return strconv.FormatUint(uint64(sum.Sum32()), 36)
}

// asset answers with the style sheet or the script.
func (v *visit) asset() error {
	name := v.r.PathValue("name")
	b, err := assets.ReadFile(path.Join("assets", path.Base("/"+name)))
	if err != nil {
		return formsvc.ErrNotFound
	}
	header := v.w.Header()
	header.Set("Content-Type", map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}[path.Ext(name)])
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("Content-Length", strconv.Itoa(len(b)))
	v.w.WriteHeader(http.StatusOK)
	if v.r.Method != http.MethodHead {
		_, _ = v.w.Write(b) // an error means that the browser is gone
	}
	return nil
}

// notes are what pages say after a form, by the parameter "note" of their address.
var notes = map[string]string{ //nolint:gochecknoglobals // immutable
	"revoked":     "The key is revoked. Requests with it are refused from now on.",
	"saved":       "The webhook is saved.",
	"saved-weak":  "The webhook is saved. " + formsvc.SecretWarning("x"),
	"deleted":     "The webhook is deleted. Nothing is sent to it any more.",
	"enabled":     "The webhook is enabled. Events are sent to it again.",
	"disabled":    "The webhook is disabled. New events are not sent to it, and what was waiting rests.",
	"test":        "A test event is on its way. Reload this page to see the answer.",
	"redelivered": "It is sent again. Reload this page to see the answer.",
	"status":      "The status is changed.",
	"commented":   "The comment is added.",
}

// note returns what the last form did. An address that somebody else made can make it
// say nothing else.
func (v *visit) note() string {
	name := v.query("note")
	if name == "redelivered-all" {
		n, _ := strconv.ParseUint(v.query("n"), 10, 32)
		if n == 0 {
			return "No delivery has failed since then, so nothing is sent again."
		}
		return fmt.Sprintf("%s failed deliveries are sent again, 50 a second.", thousands(int64(n)))
	}
	return notes[name]
}

// isoTime is a time for scripts.
func isoTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// utcTime is a time for people, as it is shown until a script shows it in their zone.
func utcTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// short cuts a text that is too long for its place.
func short(most int, text any) string {
	s := fmt.Sprint(text)
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	for i := range s {
		if most--; most == 0 {
			return s[:i] + "…"
		}
	}
	return s
}

// thousands writes a number so that people can read it.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:] // a narrow space that doesn't break
	}
	return s
}

func byteCount(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if n >= unit.size {
			return strconv.FormatFloat(float64(n)/float64(unit.size), 'f', 1, 64) + " " + unit.name
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

func millis(d time.Duration) string {
	if d >= 10*time.Second {
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return thousands(d.Round(time.Millisecond).Milliseconds()) + " ms"
}

// A link is an entry of a menu.
type link struct{ Path, Text string }

// pairs makes links of paths and texts in turn.
func pairs(values []any) []link {
	var links []link
	for i := 0; i+1 < len(values); i += 2 {
		links = append(links, link{fmt.Sprint(values[i]), fmt.Sprint(values[i+1])})
	}
	return links
}

// outcome says what came of the last attempt of a delivery.
func outcome(d formsvc.Delivery) string {
	if len(d.Log) == 0 {
		return ""
	}
	return newAttempt(d.Log[len(d.Log)-1]).What
}

// list is a list for templates that give a part more than one value.
func list(values ...any) []any { return values }

// pageSize is how many records a list shows at once: few enough for a phone, and for
// 150 KB with the longest texts.
const pageSize = 25

// A pager leads to the older records of a list.
type pager struct {
	Older string // the address, "" on the last page
	Newer bool   // whether this is not the first page
}

// page returns which part of a list the address asks for.
func (v *visit) page() formsvc.PageQuery {
	id, _ := formsvc.ParseID(v.query("after")) // what is none is the beginning
	return formsvc.PageQuery{Limit: pageSize, After: id}
}

// pager returns where the list goes on, with what else is in the address.
func (v *visit) pager(more bool, last formsvc.ID) pager {
	p := pager{Newer: v.query("after") != ""}
	if more {
		query := v.r.URL.Query()
		query.Del("note")
		query.Set("after", string(last))
		p.Older = "?" + query.Encode()
	}
	return p
}

// host returns what an address tells whom it leads to.
func host(address string) string {
	_, rest, ok := strings.Cut(address, "://")
	if !ok {
		return address
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest
}
