package httpx_test

import (
	"strings"
	"testing"
)

// File names as browsers and programs write them.
func TestUploadFileNames(t *testing.T) {
	w := newWorld(t, nil)
	list := w.response(w.campaign(plainCampaign)) + "/files"
	for disposition, want := range map[string]string{
		"filename*=UTF-8''CV%20(1).pdf":                      "CV (1).pdf",
		"filename*=utf-8''it's%20(*)%20~!.txt":               "it's (*) ~!.txt",
		`filename="old.txt"; filename*=UTF-8''new%20(2).txt`: "new (2).txt",
		`FileName = "a;b (1).txt" ;`:                         "a;b (1).txt",
		`filename="naïve.txt"; size=3`:                       "naïve.txt",
		`filename*="UTF-8''quoted%20(1).txt"`:                "quoted (1).txt",
		`filename=a.txt; filename*=UTF-8''%ff.txt`:           "a.txt",
	} {
		a := w.do("POST", list, "x", named("attachment; "+disposition)).is(201, "")
		if got := a.text("name"); got != want {
			t.Errorf("%s: %q, want %q", disposition, got, want)
		}
	}
	for disposition, why := range map[string]string{
		"attachment; filename*=UTF-8''CV (1).pdf":     "filename* that has a character that must be escaped as %XX",
		"attachment; filename*=UTF-8''CV%2.pdf":       "filename* that has a % without two",
		"attachment; filename*=CV%20(1).pdf":          "filename* that must be written as UTF-8''name",
		"attachment; filename*=ISO-8859-1''%A3":       "filename* that must be in UTF-8",
		"attachment; filename*=UTF-8''%A3":            "filename* that is not UTF-8",
		"attachment; filename=CV (1).pdf":             "filename that must be in double quotes",
		`attachment; filename="x`:                     "filename that has no closing quote",
		"attachment; filename":                        "parameter without a value",
		"attachment; filename*0=x; filename*1=y":      "name in pieces",
		"attachment; filename*=UTF-8''a; filename*=b": "filename* twice",
		"inline; filename=x":                          "must be attachment",
	} {
		a := w.do("POST", list, "x", named(disposition)).is(400, "invalid_header")
		if detail := a.text("detail"); !strings.Contains(detail, why) {
			t.Errorf("%s: %q does not tell %q", disposition, detail, why)
		}
	}
}
