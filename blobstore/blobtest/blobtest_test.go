package blobtest

import (
	"strings"
	"testing"

	"github.com/formsvc/toolkit/blobstore"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	reopen := func(_ testing.TB, s blobstore.Store) blobstore.Store { return s }
	cutOff := func(testing.TB, blobstore.Store) {}
	both := map[Category]string{Durability: "a reason", Cleaning: "another"}
	for name, c := range map[string]struct {
		opts Options
		want string
	}{
		"nothing is excepted":    {Options{Reopen: reopen, CutOff: cutOff}, ""},
		"both have their reason": {Options{Except: both}, ""},
		"no Reopen":              {Options{CutOff: cutOff}, "needs Options.Reopen"},
		"no CutOff":              {Options{Reopen: reopen}, "needs Options.CutOff"},
		"an exception without reason": {
			Options{Except: map[Category]string{Lists: ""}, Reopen: reopen, CutOff: cutOff}, "without a reason",
		},
		"an unknown category": {
			Options{Except: map[Category]string{"speed": "slow"}, Reopen: reopen, CutOff: cutOff}, "no category",
		},
	} {
		err := c.opts.check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}
