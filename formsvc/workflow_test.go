package formsvc_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

func TestStatusNames(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	r := w.submitted(&c)
	for _, status := range []string{"a", "validated", "in_review-2", "a" + strings.Repeat("z", 63), "A", "1a", "-a", "é", "In review", "a\u00a0b",
		"à vérifier / 待处理", "=1+1", `"x", y`, strings.Repeat("待", 64), strings.Repeat("\U0001F600", 64)} {
		if got := w.updated(&r, formsvc.ResponsePatch{Status: &status}); got.Status != status {
			t.Errorf("got %+v", got)
		}
	}
	for _, status := range []string{
		"", " ", "\u200b", "a\n", "a\tb", "\x00", "a\x7fb", "a\u0085b", "a\xff", "validated ", " validated", "\u00a0a", "a\u3000", "a" + strings.Repeat("z", 64),
		strings.Repeat("待", 65),
	} {
		wantFaults(t, failure(w.update(&r, formsvc.ResponsePatch{Status: &status})), "/status invalid_value")
	}
}

func TestCheckWorkflow(t *testing.T) {
	type workflow = formsvc.Workflow
	for _, c := range []struct {
		w  workflow
		ok bool
	}{
		{workflow{}, true},
		{workflow{Statuses: []string{"a"}, Final: []string{"a"}}, true},
		{workflow{
			Statuses: []string{"a"}, Transitions: map[string][]string{"a": {"pending"}, "pending": {"a"}},
		}, true},
		{workflow{Transitions: map[string][]string{"a": {"b"}}}, true},
		{workflow{Statuses: []string{"a", "B "}}, false},
		{workflow{Final: []string{""}}, false},
		{workflow{Statuses: []string{"a"}, Final: []string{"b"}}, false},
		{workflow{Transitions: map[string][]string{"a\nb": nil}}, false},
		{workflow{Statuses: []string{"a"}, Transitions: map[string][]string{"b": {"a"}}}, false},
		{workflow{Transitions: map[string][]string{"a": {" B"}}}, false},
		{workflow{Statuses: []string{"In review", "Fertig!"}, Transitions: map[string][]string{"pending": {"In review"}}}, true},
		{workflow{Statuses: []string{"a"}, Transitions: map[string][]string{"a": {"b"}}}, false},
	} {
		if err := c.w.Check(); (err == nil) != c.ok {
			t.Errorf("%+v: Check returns %v", c.w, err)
		}
	}
}

func review() *formsvc.Workflow {
	return &formsvc.Workflow{
		Statuses: []string{"review", "accepted", "refused", "archived"},
		Transitions: map[string][]string{
			"pending": {"review"}, "review": {"refused", "accepted", "pending"}, "accepted": {"archived", "review"},
		},
		Final: []string{"accepted", "refused", "archived"},
	}
}

func withWorkflow(flow *formsvc.Workflow) func(*formsvc.Options) {
	return func(o *formsvc.Options) { o.Workflow = flow }
}

func TestTransitions(t *testing.T) {
	w := newWorld(t, withWorkflow(review()))
	c := w.campaign()
	r := w.submitted(&c)
	for _, step := range []struct {
		to      string
		refused bool
		allowed []string
	}{
		{to: "accepted", refused: true, allowed: []string{"review"}},
		{to: "pending"}, // no change
		{to: "review"},
		{to: "archived", refused: true, allowed: []string{"accepted", "pending", "refused"}},
		{to: "refused"},
		{to: "refused"},
		{to: "pending", refused: true, allowed: nil},
	} {
		from := must(w.svc.Responses.Get(w.ctx, r.Key()))
		after, err := w.update(&r, formsvc.ResponsePatch{Status: &step.to})
		if !step.refused {
			if err != nil || after.Status != step.to {
				t.Errorf("from %s to %s: %+v, %v", from.Status, step.to, after, err)
			}
			continue
		}
		wantError(t, err, formsvc.ErrTransition)
		e, ok := errors.AsType[*formsvc.TransitionError](err)
		if !ok || e.From != from.Status || e.To != step.to || !slices.Equal(e.Allowed, step.allowed) {
			t.Errorf("from %s to %s: %+v", from.Status, step.to, e)
		}
	}
	wantFaults(t, failure(w.update(&r, formsvc.ResponsePatch{Status: new("validated")})), "/status unknown_status")
	// Malformed fields are reported before refused transitions.
	wantFaults(t, failure(w.update(&r, formsvc.ResponsePatch{Status: new("pending"), Email: new("x")})), "/user/email invalid_email")
	if flow := review(); !slices.Equal(flow.Transitions["review"], []string{"refused", "accepted", "pending"}) {
		t.Error("the workflow was sorted")
	}
}

// CompletedAt is the last time at which a final status was entered.
func TestCompletedAt(t *testing.T) {
	created, moved, done := webhook.ResponseCreated, webhook.ResponseStatusChanged, webhook.ResponseCompleted
	w := newWorld(t, withWorkflow(review()))
	c := w.campaign()
	r := w.submitted(&c)
	if !r.CompletedAt.IsZero() || !slices.Equal(eventTypes(w.store.take()), []formsvc.EventType{created}) {
		t.Error("a new response is finished, or raises something else")
	}
	completed := time.Time{}
	for _, step := range []struct {
		to     string
		events []formsvc.EventType
		keeps  bool // CompletedAt stays unchanged
	}{
		{"review", []formsvc.EventType{moved}, true},
		{"accepted", []formsvc.EventType{moved, done}, false},
		{"accepted", nil, true},
		{"review", []formsvc.EventType{moved}, false}, // reopened
		{"accepted", []formsvc.EventType{moved, done}, false},
		{"archived", []formsvc.EventType{moved, done}, false}, // from one final status to another
	} {
		from := w.updated(&r, formsvc.ResponsePatch{}).Status
		w.clock.add(time.Hour)
		after := w.updated(&r, formsvc.ResponsePatch{Status: &step.to})
		switch {
		case step.keeps:
		case slices.Contains(step.events, done):
			completed = w.clock.Now()
		default:
			completed = time.Time{}
		}
		if !after.CompletedAt.Equal(completed) {
			t.Errorf("%s to %s: completed at %v, want %v", from, step.to, after.CompletedAt, completed)
		}
		var types []formsvc.EventType
		for _, e := range w.parsed() {
			types = append(types, e.Type)
			if e.Data.PreviousStatus != from || !e.Data.Response.CompletedAt.Equal(completed) {
				t.Errorf("%s to %s: %+v", from, step.to, e.Data)
			}
		}
		equalAll(t, types, step.events, "%s to %s raises %q", from, step.to)
	}
	// Its content may change without changing CompletedAt.
	w.clock.add(time.Hour)
	if after := w.updated(&r, formsvc.ResponsePatch{FirstName: new("X")}); !after.CompletedAt.Equal(completed) {
		t.Errorf("completed at %v", after.CompletedAt)
	}
}

// Statuses returns exactly the statuses that Update accepts.
func TestStatusesThatMayFollow(t *testing.T) {
	for _, flow := range []*formsvc.Workflow{
		{}, review(), {Statuses: []string{"b", "a"}}, {Transitions: map[string][]string{"pending": {"b", "a"}}},
	} {
		w := newWorld(t, withWorkflow(flow))
		c := w.campaign()
		known := []string{"pending", "a", "b", "review", "accepted", "refused", "archived", "validated", "completed", "other"}
		for _, from := range known {
			r := w.submitted(&c)
			if from != r.Status {
				if _, err := w.update(&r, formsvc.ResponsePatch{Status: &from}); err != nil {
					continue
				}
			}
			next, others := w.svc.Responses.Statuses(new(formsvc.Campaign), from)
			if !slices.IsSorted(next) || slices.Contains(next, from) {
				t.Errorf("%+v: from %s: %q", flow, from, next)
			}
			for _, to := range known {
				fresh := w.submitted(&c)
				if from != "pending" {
					fresh = w.updated(&fresh, formsvc.ResponsePatch{Status: &from})
				}
				_, err := w.update(&fresh, formsvc.ResponsePatch{Status: &to})
				if may := to == from || others || slices.Contains(next, to); may != (err == nil) {
					t.Errorf("%+v: from %s to %s: %v, but the choice is %q, others %t", flow, from, to, err, next, others)
				}
			}
		}
	}
}
