package webhooktest_test

import (
	"slices"
	"testing"

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
