package intake

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/theme"
)

//go:embed texts/*.json
var textFiles embed.FS

// texts are what pages say in one language, by name.
type texts map[string]string

var (
	language = regexp.MustCompile(`^[a-z]{2,3}$`)
	added    = regexp.MustCompile(`^(error_|layout_).|[.]`) // names that only hosts have: see [formsvc.Theme].Texts
	verb     = regexp.MustCompile(`%[0-9]*([ds])`)
)

// readTexts returns the texts of all languages: ours with those of a theme.
func readTexts(t *theme.Theme, host map[string]map[string]string) (map[string]texts, error) {
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
		all[code] = t.Texts(code, all[code])
		for _, name := range slices.Sorted(maps.Keys(all[code])) {
			if problem := wrong(code, name, all[code][name], english[name]); problem != "" {
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
	switch {
	case english == "" && !added.MatchString(name):
		return "is no text of the pages"
	case strings.TrimSpace(text) == "":
		return "is missing"
	case name == "code" && (text != code || !language.MatchString(code)):
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

// format returns a text with its arguments.
func (t texts) format(name string, args ...any) string { return fmt.Sprintf(t[name], args...) }

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

// size returns a number of bytes as people read it, without a line break.
func size(n int64) string {
	return strings.Replace(humanize.Bytes(uint64(n)), " ", "\u00a0", 1) //nolint:gosec // sizes aren't negative
}
