package formsvc_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

func set(name string, value ...string) formsvc.AnswerPatch {
	return formsvc.AnswerPatch{Answer: answer(name, value...)}
}

func remove(name string) formsvc.AnswerPatch {
	return formsvc.AnswerPatch{Answer: formsvc.Answer{Name: name}, Remove: true}
}

// A merge patch replaces whole values, adds new fields at the end, removes fields that are null and
// keeps the rest (RFC 7396).
func TestMergePatch(t *testing.T) {
	before := []formsvc.Answer{answer("a", "1", "2"), answer("b"), answer("c/d~e", "")}
	const untouched = `{"a":{"value":["1","2"]},"b":{"value":[]},"c/d~e":{"value":[""]}}`
	type patch = formsvc.ResponsePatch
	answers := func(list ...formsvc.AnswerPatch) patch { return patch{Answers: list} }
	for _, c := range []struct {
		label   string
		patch   patch
		answers string
		changes []string
	}{
		{"nothing", patch{}, untouched, nil},
		{"same value", answers(set("a", "1", "2"), set("b"), set("c/d~e", "")), untouched, nil},
		{"removal of what is not there", answers(remove("x"), remove("A")), untouched, nil},
		{"same user", patch{Email: new("ada@example.com"), FirstName: new("Ada"), LastName: new("Lovelace")}, untouched, nil},
		{"metadata", patch{Metadata: map[string]*string{"b/c": new("1"), "a": nil, "": nil}}, untouched, []string{"/metadata/b~1c"}},
		{"same status", patch{Status: new("pending")}, untouched, nil},
		{
			"order of values counts", answers(set("a", "2", "1")),
			`{"a":{"value":["2","1"]},"b":{"value":[]},"c/d~e":{"value":[""]}}`, []string{"/responses/a"},
		},
		{
			"empty is not an empty text", answers(set("b", ""), set("c/d~e")),
			`{"a":{"value":["1","2"]},"b":{"value":[""]},"c/d~e":{"value":[]}}`, []string{"/responses/b", "/responses/c~1d~0e"},
		},
		{
			"new ones come last", answers(set("z"), set("A", "x")),
			`{"a":{"value":["1","2"]},"b":{"value":[]},"c/d~e":{"value":[""]},"z":{"value":[]},"A":{"value":["x"]}}`,
			[]string{"/responses/z", "/responses/A"},
		},
		{
			"removal of all", answers(remove("c/d~e"), remove("a"), remove("b")), `{}`,
			[]string{"/responses/c~1d~0e", "/responses/a", "/responses/b"},
		},
		{
			"only what changed is named, in the order of the patch",
			patch{LastName: new("Byron"), Email: new("ada@example.com"), Answers: []formsvc.AnswerPatch{
				set("~1", "x"), set("a", "1", "2"), remove("c/d~e"), remove("x"), set("b", "y"),
			}},
			`{"a":{"value":["1","2"]},"b":{"value":["y"]},"~1":{"value":["x"]}}`,
			[]string{"/user/lastName", "/responses/~01", "/responses/c~1d~0e", "/responses/b"},
		},
		{
			"users, empty names", patch{Email: new("a@b"), FirstName: new(""), LastName: new("")}, untouched,
			[]string{"/user/email", "/user/firstName", "/user/lastName"},
		},
	} {
		t.Run(c.label, func(t *testing.T) {
			w := newWorld(t)
			w.store.twice = true // a store may call decide again
			campaign := w.campaign()
			r := w.submitted(&campaign, before...)
			w.store.take()
			w.clock.add(time.Second)
			after := w.updated(&r, c.patch)
			equal(t, after.Answers.JSON(), c.answers, "the answers are %s")
			w.checkUpdate(&r, &after, c.changes)
		})
	}
}

// checkUpdate checks what depends on whether something changed.
func (w *world) checkUpdate(before, after *formsvc.Response, changes []string) {
	w.tb.Helper()
	events := w.parsed()
	if changes == nil {
		if !reflect.DeepEqual(before, after) || len(events) != 0 {
			w.tb.Errorf("nothing changed, but %+v became %+v with %d events", before, after, len(events))
		}
		return
	}
	if after.Version != before.Version+1 || !after.UpdatedAt.Equal(w.clock.Now()) || after.CreatedAt != before.CreatedAt {
		w.tb.Errorf("the response is now %+v", after)
	}
	if len(events) != 1 || events[0].Type != webhook.ResponseUpdated || !slices.Equal(events[0].Data.Changes, changes) {
		w.tb.Errorf("the events are %+v\nwant changes %q", events, changes)
	}
	if got, err := w.svc.Responses.Get(w.ctx, before.Key()); err != nil || !reflect.DeepEqual(&got, after) {
		w.tb.Errorf("Get returns %+v, %v", got, err)
	}
}

func TestPatchReportsFaults(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("ж", 201)
	c := w.campaign(
		formsvc.Module{Name: "n", Type: formsvc.NumberModule, Required: true}, formsvc.Module{Name: "o"},
	)
	r := w.submitted(&c, answer("n", "1"))
	w.store.take()
	type patch = formsvc.ResponsePatch
	answers := func(list ...formsvc.AnswerPatch) patch { return patch{Answers: list} }
	for _, test := range []struct {
		patch patch
		want  []string
	}{
		{patch{Email: new("")}, []string{"/user/email required"}},
		{answers(set("n", "x")), []string{"/responses/n/value/0 invalid_number"}},
		{answers(remove("n")), []string{"/responses/n required"}},
		{answers(set("n")), []string{"/responses/n required"}},
		{answers(set("x/y")), []string{"/responses/x~1y unknown_module"}},
		{answers(set("o", "1", "2")), []string{"/responses/o/value too_many"}},
		{answers(set(long), set(long)), []string{"/responses too_long"}},
		{answers(set("o", "x"), set("o", "y"), remove("o")), []string{
			"/responses/o duplicate", "/responses/o duplicate",
		}},
		{answers(set("n", "2"), set("n", "1")), []string{"/responses/n duplicate"}},
		{patch{Status: new("Done ")}, []string{"/status invalid_value"}},
		{
			patch{Status: new(""), Email: new("x"), FirstName: new("\x00"), LastName: new(long), Answers: []formsvc.AnswerPatch{
				set("", "x"), set("n", "x"),
			}},
			[]string{
				"/status invalid_value", "/user/email invalid_email", "/user/firstName nul_not_allowed", "/user/lastName too_long",
				"/responses/ required", "/responses/n/value/0 invalid_number",
			},
		},
	} {
		wantFaults(t, failure(w.update(&r, test.patch)), test.want...)
	}
	if got, err := w.svc.Responses.Get(w.ctx, r.Key()); err != nil || got != r || len(w.store.take()) != 0 {
		t.Errorf("the response is now %+v, %v", got, err)
	}
}

func TestPatchTooManyAnswers(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	r := w.submitted(&c, numberedAnswers(1_000)...)
	wantFaults(t, failure(w.update(&r, formsvc.ResponsePatch{Answers: []formsvc.AnswerPatch{set("one more")}})), "/responses too_many")
	w.updated(&r, formsvc.ResponsePatch{Answers: []formsvc.AnswerPatch{set("one more"), remove("0000")}})

	// The patch itself is limited, too, before the store is called.
	many := make([]formsvc.AnswerPatch, 1_001)
	for i := range many {
		many[i] = remove(fmt.Sprint("x", i))
	}
	w.store.disturb(nil)
	wantFaults(t, failure(w.update(&r, formsvc.ResponsePatch{Answers: many})), "/responses too_many")
	equal(t, w.store.count("Campaign")+w.store.count("UpdateResponse"), 0, "the store was asked %d times")
	w.updated(&r, formsvc.ResponsePatch{Answers: many[:1_000]})
}

// If the campaign no longer accepts a response, its status and user can still change; its answers
// can change only to what the campaign accepts now.
func TestPatchAfterTheCampaignChanged(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	r := w.submitted(&c, answer("old", "x"))
	w.elsewhere(&c, formsvc.CampaignInput{
		Status: formsvc.CampaignClosed, Modules: []formsvc.Module{{Name: "new", Required: true}},
	})
	w.updated(&r, formsvc.ResponsePatch{Status: new("validated"), FirstName: new("A")})
	w.updated(&r, formsvc.ResponsePatch{Answers: []formsvc.AnswerPatch{set("old", "x")}}) // changes nothing
	_, err := w.update(&r, formsvc.ResponsePatch{Answers: []formsvc.AnswerPatch{set("old", "y")}})
	wantFaults(t, err, "/responses/old unknown_module", "/responses/new required")
	w.updated(&r, formsvc.ResponsePatch{Answers: []formsvc.AnswerPatch{remove("old"), set("new", "y")}})
}

// A node's clock may be behind that of the node that made the last change.
func TestUpdatedAtNeverDecreases(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	r := w.submitted(&c)
	w.clock.add(time.Minute)
	r = w.updated(&r, formsvc.ResponsePatch{Status: new("seen")})
	w.clock.add(-30 * time.Second)
	later := w.updated(&r, formsvc.ResponsePatch{Status: new("completed")})
	if !later.UpdatedAt.Equal(r.UpdatedAt) || !later.CompletedAt.Equal(r.UpdatedAt) {
		t.Errorf("changed at %v and completed at %v after a change at %v", later.UpdatedAt, later.CompletedAt, r.UpdatedAt)
	}
	for _, e := range w.parsed()[2:] {
		if e.Timestamp.Before(r.UpdatedAt) {
			t.Errorf("%s at %v, after a change at %v", e.Type, e.Timestamp, r.UpdatedAt)
		}
	}
}
