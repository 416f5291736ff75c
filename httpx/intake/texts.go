package intake

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/theme"
)

//go:embed texts/*.json
var textFiles embed.FS

// texts are what pages say in one language, by name.
type texts map[string]string

var (
	languageCode = regexp.MustCompile(`^[a-z]{2,3}$`)
	added        = regexp.MustCompile(`^(error_|layout_).|[.]|^monthsToo$`) // names that English lacks: see [formsvc.Theme].Texts
	verb         = regexp.MustCompile(`%[0-9]*([ds])`)
)

// readTexts returns the texts of all languages: ours with those of a theme.
func readTexts(t *theme.Theme, host map[string]map[string]string) (map[string]texts, error) {
	all, more := make(map[string]texts), make(map[string]texts) // more has what not every language needs
	b, _ := textFiles.ReadFile("texts/more.json")
	_ = json.Unmarshal(b, &more) // embedded; a test reads them
	for _, code := range formsvc.FormLanguages() {
		ours := make(texts)
		b, _ := textFiles.ReadFile("texts/" + code + ".json")
		_ = json.Unmarshal(b, &ours) // embedded; below, a text is missing if this fails
		maps.Copy(ours, more[code])
		all[code] = ours
	}
	english := all["en"]
	for code := range host {
		if all[code] == nil && code != "" {
			all[code] = make(texts)
			for name := range english { // no text in English completes it
				if !strings.Contains(name, ":") {
					all[code][name] = ""
				}
			}
		}
	}
	for _, code := range slices.Sorted(maps.Keys(all)) {
		ours := all[code]
		all[code] = t.Texts(code, ours)
		all[code].dropPlurals(host[code], host[""], ours, host["en"])
		for _, name := range slices.Sorted(maps.Keys(all[code])) {
			if problem := wrong(code, name, all[code][name], english[singular(name)]); problem != "" {
				return nil, fmt.Errorf("texts of %q: %q %s", code, name, problem)
			}
		}
		if _, err := t.Frame("", "Title", all[code]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// wrong returns what is wrong with a text, or "". It takes the arguments of the English one.
func wrong(code, name, text, english string) string {
	var args []any
	for _, m := range verb.FindAllStringSubmatch(english, -1) {
		args = append(args, map[string]any{"d": 1, "s": ""}[m[1]])
	}
	if name != singular(name) && !verb.MatchString(text) {
		args = nil // "one file" needs no number
	}
	switch {
	case english == "" && !added.MatchString(name):
		return "is no text of the pages"
	case strings.TrimSpace(text) == "":
		return "is missing"
	case name == "code" && (text != code || !languageCode.MatchString(code)):
		return "must be the language, of two or three letters"
	case name == "dir" && text != "ltr" && text != "rtl":
		return `must be "ltr" or "rtl"`
	case name == "months" && len(strings.Split(text, " ")) != 12, name == "monthsToo" && len(strings.Split(text, " "))%12 != 0:
		return "must have twelve words"
	case args != nil && strings.Contains(fmt.Sprintf(text, args...), "%!"):
		return "must take the same arguments as " + strconv.Quote(english)
	}
	return ""
}

// pluralForms are the ends of names of texts for some numbers, such as "most:few".
//
//nolint:gochecknoglobals // immutable
var pluralForms = map[plural.Form]string{plural.Zero: ":zero", plural.One: ":one", plural.Two: ":two", plural.Few: ":few", plural.Many: ":many"}

// singular returns the name of a text without the end for a number.
func singular(name string) string {
	for _, form := range pluralForms {
		name = strings.TrimSuffix(name, form)
	}
	return name
}

// dropPlurals removes the forms for a number that belong to another source than the text. The sources begin with the most important.
func (t texts) dropPlurals(sources ...map[string]string) {
	for name := range t {
		from := func(name string) int {
			return slices.IndexFunc(sources, func(s map[string]string) bool { return s[name] != "" })
		}
		if text := from(singular(name)); text >= 0 && text < from(name) {
			delete(t, name)
		}
	}
}

// format returns a text with its arguments. If the first is a number, the plural rules of the language choose the text.
func (t texts) format(name string, args ...any) string {
	text := t[name]
	for i, arg := range args {
		if n, ok := arg.(byteCount); ok {
			args[i] = t.size(n)
		} else if n, ok := arg.(int); ok && i == 0 {
			form := plural.Cardinal.MatchPlural(language.Make(t["code"]), n, 0, 0, 0, 0)
			text = cmp.Or(t[name+pluralForms[form]], text)
		}
	}
	if !verb.MatchString(text) {
		return text
	}
	return fmt.Sprintf(text, args...)
}

// translate chooses the language of the form, if it has one that the pages have.
func (v *visit) translate() {
	if t := v.h.texts[v.campaign.Form.Language]; t != nil {
		v.t = t
	}
}

// preferred returns the language of the pages that a header Accept-Language likes best.
func (h *Handler) preferred(header string) string {
	best, weight := "en", 0.0
	for entry := range strings.SplitSeq(header, ",") {
		tag, parameter, _ := strings.Cut(entry, ";")
		primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		q := 1.0
		if value, ok := strings.CutPrefix(strings.TrimSpace(parameter), "q="); ok {
			q, _ = strconv.ParseFloat(value, 64) // 0 if it isn't one
		}
		if h.texts[primary] != nil && q > weight {
			best, weight = primary, q
		}
	}
	return best
}

// A byteCount is a number of bytes.
type byteCount int64

// size returns a number of bytes as people read it, without a line break.
func (t texts) size(n byteCount) string {
	return strings.NewReplacer(" ", "\u00a0", ".", cmp.Or(decimalOf(t["code"]), ".")).Replace(humanize.Bytes(uint64(n))) //nolint:gosec // sizes aren't negative
}
