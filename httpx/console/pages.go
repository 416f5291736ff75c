package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/theme"
)

// pages has the templates, by the name of the page.
type pages map[string]*template.Template

// A page is the data of every template.
type page struct {
	Base, Name, Title, Section string
	Who                        string // "" if no visitor is signed in
	SignsOut, Own              bool   // whether the session, and the people, are ours
	Operator                   bool   // whether the visitor came by a link of the account
	Token, Once                string // hidden fields of forms
	Note                       string // the result of the last form
	Wrong                      map[string]string
	Version                    string // of the assets
	Zone                       string // of all times
	TellZone                   bool   // whether a script may tell another and load the page again
	Campaign                   *formsvc.Campaign
	Data                       any
	Frame                      theme.Frame
	Part                       int  // 1 shows records at their usual length, 2 a half of it, and so on
	Cut                        bool // whether something was left out so far
	parted                     bool // whether the template depends on Part
	visit                      *visit
}

// Limits of a page with records, whatever is stored.
const (
	pageBytes = 150_000 // of HTML
	mostParts = 64      // of [page].Part, with which every page fits
)

// Short truncates a text to its part of that many characters.
func (p *page) Short(most int, text string) string {
	p.parted = true
	shown := short(max(most/p.Part, 2), text)
	p.Cut = p.Cut || shown != text
	return shown
}

// Some returns the first of a list, up to its part of most.
func (p *page) Some(most int, list any) any { return p.some(most, list, 0) }

// Newest returns the last of a list, up to its part of most.
func (p *page) Newest(most int, list any) any { return p.some(most, list, 1) }

func (p *page) some(most int, list any, end int) any {
	p.parted = true
	all := reflect.ValueOf(list)
	left := max(all.Len()-max(most/p.Part, 1), 0)
	p.Cut = p.Cut || left > 0
	return all.Slice(left*end, all.Len()-left*(1-end)).Interface()
}

// readTexts reads the texts of pages, with those of the theme, and of snippets.
func (h *Handler) readTexts() (err error) {
	for _, name := range []string{"snippets", "texts"} {
		b, _ := templates.ReadFile("templates/" + name + ".json") // embedded
		err = cmp.Or(err, json.Unmarshal(b, &h.texts))
	}
	h.words = h.theme.Texts("en", map[string]string{"code": "en", "dir": "ltr"})
	for name, text := range h.words {
		if kind, key, ok := strings.Cut(name, "."); ok && (kind == "languages" || kind != "sections" && h.texts[kind][key] != "") {
			h.texts[kind][key] = text
		} else if ok {
			err = cmp.Or(err, fmt.Errorf("options: Theme: Texts: %q is no text of the console", name))
		}
	}
	_, wrong := h.theme.Frame("", "Title", h.words)
	return cmp.Or(err, wrong)
}

// parsePages parses the templates. Each page uses the same layout.
func (h *Handler) parsePages() (pages, error) {
	if err := h.readTexts(); err != nil {
		return nil, err
	}
	var err error
	if h.snippets, err = template.New("").Funcs(template.FuncMap{"join": strings.Join}).ParseFS(templates, "templates/snippets.html"); err != nil {
		return nil, err
	}
	layout, err := template.New("layout.html").Funcs(template.FuncMap{
		"iso": isoTime, "utc": utcTime, "short": short, "thousands": thousands, "millis": millis, "list": list,
		"shell": shell, "phase": func(c *formsvc.Campaign) phase { return phaseOf(c, h.svc.Now()) },
		"keyState": func(k formsvc.Key) string { return keyState(&k, h.svc.Now()) },
		"curlAPI":  curlAPI, "typeOf": typeOf, "types": h.types, "typeName": h.typeName,
		"failure": h.failureText, "advice": h.advice, "reply": replyText, "who": who, "sentTo": sentTo, "byMail": byMail, "toSubmitters": func(w formsvc.Webhook) bool { return w.ToSubmitters() },
		"languages": h.svc.Campaigns.Languages, "bytes": func(n any) string { return humanize.Bytes(uint64(reflect.ValueOf(n).Int())) }, //nolint:gosec // sizes aren't negative
		"text": func(kind string, key any) string { return h.texts[kind][fmt.Sprint(key)] },
		"plus": func(a, b int) int { return a + b }, "json": func(m formsvc.Module) string { return jsonOf(&m) },
		"minus": func(all any, shown int) int64 { return reflect.ValueOf(all).Int() - int64(shown) },
	}).ParseFS(templates, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, err
	}
	parsed := pages{}
	for name := range h.texts["sections"] {
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

// asset sends a style sheet, a script or an image.
func (v *visit) asset() error {
	if !v.h.theme.Serve(v.w, v.r, v.r.PathValue("name")) {
		return formsvc.ErrNotFound
	}
	return nil
}

// note returns the result of the last form. A forged address can only select another of the fixed messages.
func (v *visit) note() string {
	name := v.query("note")
	switch bulk := name == "selected" || name == "undone"; {
	case name == "selected" && v.counted("n")+v.counted("refused") == "00":
		name = "selected-none"
	case bulk && v.query("refused") == "0":
		name += "-all"
	}
	return strings.NewReplacer("{n}", v.counted("n"), "{refused}", v.counted("refused")).Replace(v.h.texts["notes"][name])
}

// counted returns a number in the address.
func (v *visit) counted(name string) string {
	n, _ := strconv.ParseUint(v.query(name), 10, 32)
	return thousands(int64(n))
}

// utcTime formats a time for people, which [visit.localTimes] replaces by local time.
func utcTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// short cuts a text that is too long.
func short(most int, text any) string {
	s := fmt.Sprint(text)
	runes := []rune(s[:min(len(s), utf8.UTFMax*(most+1))])
	if len(runes) <= most {
		return s
	}
	return string(runes[:most-1]) + "…"
}

// thousands formats a number with narrow no-break spaces as separators.
func thousands(n int64) string { return strings.ReplaceAll(humanize.Comma(n), ",", "\u202f") }

func millis(d time.Duration) string {
	if d >= 10*time.Second {
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return thousands(d.Round(time.Millisecond).Milliseconds()) + " ms"
}

// list returns its arguments, for templates that pass several values.
func list(values ...any) []any { return values }

// pageSize is how many records a list shows at once: it suits a phone, and with the longest texts stays below 150 KB.
const pageSize = 25

// maxPage ends a list early, with the record that brings its bytes to this.
const maxPage = 1 << 20

// A pager has the links to the other pages of a list.
type pager struct {
	Older  string // the address, "" on the last page
	First  string // the address of the first page
	Newer  bool   // whether this is not the first page
	Oldest bool   // whether the list begins with the oldest record
	Sorted bool   // whether it isn't in the order of time
}

// page returns the part of a list that the address asks for.
func (v *visit) page() formsvc.PageQuery {
	id, _ := formsvc.ParseID(v.viewed().Get("after")) // an invalid one means the first page
	return formsvc.PageQuery{Limit: pageSize, After: id, MaxBytes: maxPage, Ascending: v.ascending()}
}

// ascending reports whether the oldest record is first, or that with the least value of the column which the table is sorted by.
func (v *visit) ascending() bool {
	order := v.viewed().Get("order")
	return order == "asc" || order == "" && v.sort != ""
}

// viewed returns the query of the list that the visitor sees, or that the page or form came from.
func (v *visit) viewed() url.Values {
	query := v.r.URL.Query()
	if v.r.Method == http.MethodPost {
		query, _ = url.ParseQuery(v.r.PostForm.Get("view")) // what can't be read is left out
	}
	for _, name := range []string{"note", "n", "refused", "columns", "searched", "ask"} {
		query.Del(name)
	}
	maps.DeleteFunc(query, func(name string, values []string) bool { return name != "c" && strings.Join(values, "") == "" })
	return query
}

// View returns the query of the list that the page shows or came from.
func (p *page) View() string { return p.visit.viewed().Encode() }

// Suffix returns that query with its question mark, if it isn't empty.
func (p *page) Suffix() string { return strings.TrimSuffix("?"+p.View(), "?") }

// without returns the address of the list without these parameters.
func (v *visit) without(names ...string) string {
	query := v.viewed()
	for _, name := range names {
		query.Del(name)
	}
	return "?" + query.Encode()
}

// cut returns the page of a whole list that the address asks for, and its links. The list has the oldest record first, and the page the newest.
// An unknown record in the address means the first page.
func cut[T any](v *visit, list []T, id func(*T) formsvc.ID) ([]T, pager) {
	slices.Reverse(list)
	list = list[slices.IndexFunc(list, func(x T) bool { return id(&x) == v.page().After })+1:]
	page := formsvc.Page[T]{Items: list[:min(len(list), pageSize)], More: len(list) > pageSize}
	return page.Items, pagerOf(v, page, id)
}

// pagerOf returns the links of a list, with the other parameters of the address kept.
func pagerOf[T any](v *visit, list formsvc.Page[T], id func(*T) formsvc.ID) pager {
	p := pager{First: v.without("after"), Newer: v.query("after") != "", Oldest: v.ascending(), Sorted: v.sort != ""}
	if list.More {
		p.Older = p.First + "&after=" + string(id(&list.Items[len(list.Items)-1]))
	}
	return p
}
