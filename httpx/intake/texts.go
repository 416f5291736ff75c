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
	added        = regexp.MustCompile(`^(error_|layout_).|[.]`) // names that only hosts have: see [formsvc.Theme].Texts
	verb         = regexp.MustCompile(`%[0-9]*([ds])`)
)

// readTexts returns the texts of all languages: ours with those of a theme.
func readTexts(t *theme.Theme, host map[string]map[string]string) (map[string]texts, error) {
	var more map[string]texts // separators, texts for some numbers, and other names of months
	b, _ := textFiles.ReadFile("texts/more.json")
	_ = json.Unmarshal(b, &more)
	all := make(map[string]texts)
	for _, code := range formsvc.FormLanguages() {
		var ours texts
		b, _ := textFiles.ReadFile("texts/" + code + ".json")
		_ = json.Unmarshal(b, &ours) // embedded; below, a text is missing if this fails
		all[code] = ours
	}
	english := all["en"]
	for code := range host {
		if all[code] == nil && code != "" {
			all[code] = make(texts)
			for name := range english { // no text in English completes it
				all[code][name] = ""
			}
		}
	}
	for _, code := range slices.Sorted(maps.Keys(all)) {
		ours := all[code]
		all[code] = t.Texts(code, ours)
		for _, name := range slices.Sorted(maps.Keys(all[code])) {
			if problem := wrong(code, name, all[code][name], english[name]); problem != "" {
				return nil, fmt.Errorf("texts of %q: %q %s", code, name, problem)
			}
		}
		for name, text := range more[code] {
			if of, _, _ := strings.Cut(name, ":"); all[code][of] == ours[of] { // it isn't the host's
				all[code][name] = text
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
	switch {
	case english == "" && !added.MatchString(name):
		return "is no text of the pages"
	case strings.TrimSpace(text) == "":
		return "is missing"
	case name == "code" && (text != code || !languageCode.MatchString(code)):
		return "must be the language, of two or three letters"
	case name == "dir" && text != "ltr" && text != "rtl":
		return `must be "ltr" or "rtl"`
	case name == "months" && len(strings.Split(text, " ")) != 12:
		return "must have twelve words"
	case args != nil && strings.Contains(fmt.Sprintf(text, args...), "%!"):
		return "must take the same arguments as " + strconv.Quote(english)
	}
	return ""
}

// pluralForms are the ends of names of texts for some numbers, such as "most:few".
//
//nolint:gochecknoglobals // immutable
var pluralForms = map[plural.Form]string{plural.One: ":one", plural.Two: ":two", plural.Few: ":few", plural.Many: ":many"}

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

// translate chooses the language of the form, if it has one that the pages have, and the owner's own words.
func (v *visit) translate() {
	form := &v.campaign.Form
	if t := v.h.texts[form.Language]; t != nil {
		v.t = t
	}
	if own := form.Texts; own != (formsvc.FormTexts{}) {
		v.t = maps.Clone(v.t)
		for name, text := range map[string]string{"send": own.Button, "thanksTitle": own.ThanksTitle, "closed": own.Closed, "taken": own.Full} {
			v.t[name] = cmp.Or(text, v.t[name])
		}
	}
}

// preferred returns the language of the pages that a header Accept-Language likes best.
func (h *Handler) preferred(header string) string {
	if header == "" {
		return "en"
	}
	tags, _, _ := language.ParseAcceptLanguage(header) // none if it isn't one
	for _, tag := range tags {
		if base, _ := tag.Base(); h.texts[base.String()] != nil {
			return base.String()
		}
	}
	return "en"
}

// A byteCount is a number of bytes.
type byteCount int64

// size returns a number of bytes as people read it, without a line break.
func (t texts) size(n byteCount) string {
	return strings.NewReplacer(" ", "\u00a0", ".", cmp.Or(t["decimal"], ".")).Replace(humanize.Bytes(uint64(n))) //nolint:gosec // sizes aren't negative
}
