package webhooktest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/webhooktest"
)

func TestVectorsCoverEveryOutcome(t *testing.T) {
	all, err := webhooktest.Vectors()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	outcomes := map[error]int{}
	lengths := map[int]bool{}
	for _, v := range all {
		names = append(names, v.Name)
		outcomes[v.Want]++
		lengths[len(v.Body)] = true
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(all) {
		t.Error("two vectors have the same name")
	}
	for _, want := range []error{
		nil, webhook.ErrNoSecret, webhook.ErrTooLarge, webhook.ErrNoSignature,
		webhook.ErrMalformedSignature, webhook.ErrMismatch,
	} {
		if outcomes[want] == 0 {
			t.Errorf("no vector for %v", want)
		}
	}
	for _, n := range []int{0, 1_000_000, 1 << 20, webhook.DefaultMaxBody, webhook.DefaultMaxBody + 1} {
		if !lengths[n] {
			t.Errorf("no vector with a body of %d bytes", n)
		}
	}
}

func TestVectorsAreNotShared(t *testing.T) {
	first, err := webhooktest.Vectors()
	if err != nil {
		t.Fatal(err)
	}
	name := first[0].Name
	first[0].Name, first[0].Body[0] = "changed", '!'
	second, err := webhooktest.Vectors()
	if err != nil {
		t.Fatal(err)
	}
	if second[0].Name != name || second[0].Body[0] == '!' {
		t.Error("a change shows in the next call")
	}
}

func TestStandardVectorsCoverEveryOutcome(t *testing.T) {
	t.Parallel()
	all, err := webhooktest.StandardVectors()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	outcomes := map[error]int{}
	for _, v := range all {
		if names[v.Name] {
			t.Errorf("two vectors have the name %q", v.Name)
		}
		names[v.Name] = true
		outcomes[v.Want]++
		if v.Tolerance != 5*time.Minute || v.Now.Year() != 2026 || v.Header.Get(webhook.SignatureHeader) == "" {
			t.Errorf("%s: tolerance %s at %s", v.Name, v.Tolerance, v.Now)
		}
	}
	for _, want := range []error{
		nil, webhook.ErrNoSignature, webhook.ErrMalformedSignature, webhook.ErrMismatch, webhook.ErrTooOld, webhook.ErrTooNew,
	} {
		if outcomes[want] == 0 {
			t.Errorf("no vector for %v", want)
		}
	}
	all[0].Body[0] = '!'
	if again, err := webhooktest.StandardVectors(); err != nil || again[0].Body[0] == '!' {
		t.Errorf("a change shows in the next call, or %v", err)
	}
}
