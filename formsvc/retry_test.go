package formsvc_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// failFirst makes the first n calls of a method fail.
func failFirst(method string, n int, err error) func(string, int) error {
	return func(m string, call int) error {
		if m == method && call <= n {
			return err
		}
		return nil
	}
}

// A changed campaign is read again, and a taken reference replaced. After some retries the call
// fails.
func TestCreateResponseRetries(t *testing.T) {
	stale, conflict := fmt.Errorf("s: %w", formsvc.ErrStale), fmt.Errorf("s: %w", formsvc.ErrConflict)
	for _, c := range []struct {
		label         string
		fails         int
		err           error
		want          error
		writes, reads int
		reference     string // of the response: the last one tried
	}{
		{"at once", 0, nil, nil, 1, 1, "REF-00001"},
		{"stale once", 1, stale, nil, 2, 2, "REF-00002"},
		{"stale to the last", formsvc.Retries - 1, stale, nil, formsvc.Retries, formsvc.Retries, "REF-00008"},
		{"always stale", formsvc.Retries, stale, formsvc.ErrUnavailable, formsvc.Retries, formsvc.Retries, ""},
		{"reference taken once", 1, conflict, nil, 2, 1, "REF-00002"},
		{"reference always taken", formsvc.Retries, conflict, formsvc.ErrUnavailable, formsvc.Retries, 1, ""},
		{"outcome unknown", 1, formsvc.ErrUnknownOutcome, formsvc.ErrUnknownOutcome, 1, 1, ""},
	} {
		t.Run(c.label, func(t *testing.T) {
			w := newWorld(t)
			campaign := w.campaign()
			w.store.disturb(failFirst("CreateResponse", c.fails, c.err))
			r, err := w.submit(&campaign)
			wantError(t, err, c.want)
			equal(t, r.Reference, c.reference, "the reference is %q")
			if writes, reads := w.store.count("CreateResponse"), w.store.count("Campaign"); writes != c.writes || reads != c.reads {
				t.Errorf("%d writes and %d reads of the campaign, want %d and %d", writes, reads, c.writes, c.reads)
			}
			if events := w.store.take(); (len(events) == 1) != (c.want == nil) {
				t.Errorf("%d events", len(events))
			}
		})
	}
}

func TestCampaignIsCached(t *testing.T) {
	w := newWorld(t)
	modules := make([]formsvc.Module, 220)
	for i := range modules {
		modules[i].Name = fmt.Sprint(i)
	}
	small := w.campaign(modules...)
	for i := range modules {
		modules[i].Label = strings.Repeat("x", 150)
	}
	large := w.campaign(modules...)
	if small.Size() > formsvc.LargestCached || large.Size() <= formsvc.LargestCached {
		t.Fatalf("sizes %d and %d", small.Size(), large.Size())
	}
	for range 3 {
		w.submitted(&small)
		w.submitted(&large)
	}
	equal(t, w.store.count("Campaign"), 1+3, "a small and a large campaign were read %d times")
}

// elsewhere changes the campaign like another node.
func (w *world) elsewhere(c *formsvc.Campaign, in formsvc.CampaignInput) {
	w.tb.Helper()
	in.Title = "changed"
	must(w.neighbour().Campaigns.Replace(w.ctx, c.Key(), in))
}

// If a cached campaign accepts a response, the write confirms it; if it refuses, the stored
// campaign is checked.
func TestChangesOnOtherNodesAreNoticed(t *testing.T) {
	closed := formsvc.CampaignInput{Status: formsvc.CampaignClosed}
	numbers := formsvc.CampaignInput{Modules: []formsvc.Module{{Name: "a", Type: formsvc.NumberModule}}}
	w := newWorld(t)
	c := w.campaign()
	w.submitted(&c, answer("a", "x"))

	w.elsewhere(&c, closed)
	wantError(t, failure(w.submit(&c, answer("a", "x"))), formsvc.ErrCampaignClosed)
	w.elsewhere(&c, formsvc.CampaignInput{})
	w.submitted(&c, answer("a", "x"))

	w.elsewhere(&c, numbers)
	wantFaults(t, failure(w.submit(&c, answer("a", "x"))), "/responses/a/value/0 invalid_number")
	w.elsewhere(&c, formsvc.CampaignInput{})
	w.submitted(&c, answer("a", "x"))

	other := formsvc.Module{Name: "a", Type: formsvc.ChoiceModule, Options: []string{"x"}, Other: true}
	w.elsewhere(&c, formsvc.CampaignInput{Modules: []formsvc.Module{other}})
	equal(t, w.submitted(&c, answer("a", " y ")).Answers.JSON(), `{"a":{"value":["y"]}}`, "stored %s")
	w.elsewhere(&c, formsvc.CampaignInput{})
	equal(t, w.submitted(&c, answer("a", " y ")).Answers.JSON(), `{"a":{"value":[" y "]}}`, "stored %s")
}

// The campaign changes between the decision and the write.
func TestChangeDuringTheWriteIsNoticed(t *testing.T) {
	w := newWorld(t)
	campaign := w.campaign()
	during := func(in formsvc.CampaignInput) error {
		w.store.disturb(func(method string, call int) error {
			if method == "CreateResponse" && call == 1 {
				w.elsewhere(&campaign, in)
			}
			return nil
		})
		_, err := w.submit(&campaign, answer("a", "x"))
		return err
	}
	wantError(t, during(formsvc.CampaignInput{}), nil) // only its title
	wantFaults(t, during(formsvc.CampaignInput{Modules: []formsvc.Module{{Name: "b", Required: true}}}),
		"/responses/a unknown_module", "/responses/b required")
	w.elsewhere(&campaign, formsvc.CampaignInput{})
	wantError(t, during(formsvc.CampaignInput{Status: formsvc.CampaignClosed}), formsvc.ErrCampaignClosed)
}
