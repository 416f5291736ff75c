package intake

import (
	"embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/formsvc/toolkit/formsvc"
)

//go:embed texts/*.json
var textFiles embed.FS

// texts are what pages say in one language, by name.
type texts map[string]string

// languages are those of the pages. The first one is the default.
func languages() []string { return formsvc.FormLanguages() }

// readTexts returns the texts of all languages.
func readTexts() (map[string]texts, error) {
	all := make(map[string]texts)
	for _, code := range languages() {
		b, err := textFiles.ReadFile("texts/" + code + ".json")
		if err != nil {
			return nil, err
		}
		var t texts
		if err := json.Unmarshal(b, &t); err != nil {
			return nil, fmt.Errorf("texts of %s: %w", code, err)
		}
		all[code] = t
	}
	return all, nil
}

// format returns a text with its arguments.
func (t texts) format(name string, args ...any) string { return fmt.Sprintf(t[name], args...) }

// preferred returns the language that a header Accept-Language likes best.
func preferred(header string) string {
	best, weight := languages()[0], 0.0
	for entry := range strings.SplitSeq(header, ",") {
		tag, parameter, _ := strings.Cut(entry, ";")
		primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		q := 1.0
		if value, ok := strings.CutPrefix(strings.TrimSpace(parameter), "q="); ok {
			q, _ = strconv.ParseFloat(value, 64) // 0 if it isn't one
		}
		for _, code := range languages() {
			if primary == code && q > weight {
				best, weight = code, q
			}
		}
	}
	return best
}

// size returns a number of bytes as people read it, without a line break.
func size(n int64) string {
	return strings.Replace(humanize.Bytes(uint64(n)), " ", "\u00a0", 1) //nolint:gosec // sizes aren't negative
}
