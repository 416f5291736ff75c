package blobstore_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/blobstore"
)

// FuzzCheckKey compares CheckKey with a regular expression, and checks that keys are local paths.
func FuzzCheckKey(f *testing.F) {
	segment := strings.Repeat("s", 200)
	full := segment + "/" + segment + "/" + strings.Repeat("f", blobstore.MaxKey-402)
	for _, key := range []string{
		"a", "z", "0", "9", "-", "_", "a.", "a..b", "a/b", "a/b/c", "ab/0192f0c1-2a3b-7c4d-8e5f-0123456789ab", segment, full,
		strings.Repeat("a/", blobstore.MaxKey/2-1) + "aa",
		"", "/", "/a", "a/", "a//b", "//", ".", "..", "./a", "../a", "a/..", "a/../b", "a/.b", ".a", ".tmp/a",
		"A", "Z", "a/B", "ä", "\u212a", "a b", " ", "a\x00", "a\n", `a\b`, "a:b", "a@b", "a[", "a`", "a{", "a%2fb", "a*b", "a?", "\xff", "a\x80",
		segment + "s", "a/" + segment + "s", segment + "s/a", full + "f", strings.Repeat("a/", blobstore.MaxKey/2) + "a",
	} {
		f.Add(key)
	}
	rule := regexp.MustCompile(`^[a-z0-9_-][a-z0-9_.-]{0,199}(/[a-z0-9_-][a-z0-9_.-]{0,199})*\z`)
	f.Fuzz(func(t *testing.T, key string) {
		err := blobstore.CheckKey(key)
		if want := len(key) <= blobstore.MaxKey && rule.MatchString(key); (err == nil) != want || !want && !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: error %v, and the rule says %t", key, err, want)
		}
		if path := filepath.FromSlash(key); err == nil && (!filepath.IsLocal(path) || filepath.Clean(path) != path) {
			t.Errorf("%q is no clean path", key)
		}
	})
}
