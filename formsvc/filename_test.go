package formsvc_test

import (
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

func TestCleanFileName(t *testing.T) {
	long := strings.Repeat("ü", 200)
	for in, want := range map[string]string{
		"plan.pdf":             "plan.pdf",
		"../../etc/passwd":     "passwd",
		`..\x`:                 "x",
		`C:\Users\ada\x.txt`:   "x.txt",
		"a/b":                  "b",
		"":                     "file",
		"..":                   "file",
		" . ":                  "file",
		".htaccess":            ".htaccess",
		"name. ":               "name",
		"  name.txt":           "name.txt",
		"a\x00b\r\nc\td":       "abcd",
		"gpj.\u202eexe.txt":    "gpj.exe.txt",
		"\u2066x\u2069\u061c":  "x",
		"a\u2028b":             "ab",
		"bad\xffname":          "bad\uFFFDname",
		`quo"te%20'.txt`:       `quo"te%20'.txt`,
		"😀.png":                "😀.png",
		"e\u0301.txt":          "e\u0301.txt",
		long + ".tar.gz":       strings.Repeat("ü", 126) + ".gz",
		"x." + long:            "x." + strings.Repeat("ü", 126),
		strings.Repeat("a", 9): "aaaaaaaaa",

		"=?UTF-8?B?w4TDnC9Lb3BpZT8ucGRm?=":                "Kopie?.pdf", // with a slash in it, and one in its encoding
		"=?utf-8?q?Pl=C3=A4n.pdf?=":                       "Plän.pdf",
		"=?ISO-8859-1?Q?Pl=E4n?= =?ISO-8859-1?Q?_1.pdf?=": "Plän 1.pdf",
		"a=?UTF-8?B?Lg?=.txt":                             "a=?UTF-8?B?Lg?=.txt",
		"=?UTF-8?B?" + "Li4vLi4vZXRjL3Bhc3N3ZA==" + "?=":  "passwd",
	} {
		got := formsvc.CleanFileName(in)
		equal(t, got, want, "%q: got %q", in)
		if again := formsvc.CleanFileName(got); again != got || len(got) > 255 || strings.ContainsAny(got, "/\\\x00\r\n\u202e") {
			t.Errorf("%q: %q becomes %q", in, got, again)
		}
	}
}
