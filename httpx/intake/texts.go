package intake

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/theme"
)

//go:embed texts/*.json
var textFiles embed.FS

// texts are what pages say in one language, by name.
type texts map[string]string

// added are names that hosts may add: see [formsvc.Theme].Texts. Those with a full stop are the console's.
var added = regexp.MustCompile(`^(error_|layout_).|[.]`)

// readTexts returns the texts of all languages: ours with those of a theme.
func readTexts(t *theme.Theme, host map[string]map[string]string) (map[string]texts, error) {
	ours, all := make(map[string]texts), make(map[string]texts)
	for _, code := range formsvc.FormLanguages() {
		b, _ := textFiles.ReadFile("texts/" + code + ".json") // embedded
		var one texts
		if err := json.Unmarshal(b, &one); err != nil {
			return nil, fmt.Errorf("texts of %s: %w", code, err)
		}
		ours[code], all[code] = one, t.Texts(code, one)
	}
	for _, code := range slices.Sorted(maps.Keys(host)) {
		for _, name := range slices.Sorted(maps.Keys(host[code])) {
			if err := checkText(ours["en"], name, host[code][name]); err != nil {
				return nil, fmt.Errorf("Texts %q %q: %w", code, name, err)
			}
		}
		if code == "" || ours[code] != nil {
			continue
		}
		if !language.MatchString(code) {
			return nil, fmt.Errorf("Texts: %q is no language of two or three letters", code)
		}
		for _, name := range slices.Sorted(maps.Keys(ours["en"])) {
			if host[code][name]+host[""][name] == "" && name != "code" {
				return nil, fmt.Errorf("Texts %q lack %q", code, name)
			}
		}
		all[code] = t.Texts(code, map[string]string{"code": code})
	}
	for code, texts := range all {
		if _, err := t.Frame("", theme.Page{Title: "Title", Language: code, Direction: texts["dir"], Texts: texts}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

var (
	language = regexp.MustCompile(`^[a-z]{2,3}$`)
	verb     = regexp.MustCompile(`%[0-9]*([ds])`)
)

// checkText checks a host's text: it takes the arguments of ours.
func checkText(ours texts, name, text string) error {
	own, known := ours[name]
	var args []any
	for _, m := range verb.FindAllStringSubmatch(own, -1) {
		args = append(args, map[string]any{"d": 1, "s": ""}[m[1]])
	}
	switch {
	case name == "code" || !known && !added.MatchString(name):
		return errors.New("no text has this name")
	case strings.TrimSpace(text) == "" || !utf8.ValidString(text):
		return errors.New("is empty or isn't UTF-8")
	case name == "dir" && text != "ltr" && text != "rtl":
		return errors.New(`must be "ltr" or "rtl"`)
	case name == "months" && len(strings.Split(text, " ")) != 12:
		return errors.New("needs twelve words")
	case args != nil && strings.Contains(fmt.Sprintf(text, args...), "%!"):
		return fmt.Errorf("must have the arguments of %q", own)
	}
	return nil
}

// format returns a text with its arguments.
func (t texts) format(name string, args ...any) string { return fmt.Sprintf(t[name], args...) }

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
