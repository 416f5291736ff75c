package formsvc_test

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func TestCampaignInput(t *testing.T) {
	at := func(year int) time.Time { return time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC) }
	many := make(map[string]string)
	for i := range 100 {
		many[fmt.Sprint(i)] = ""
	}
	more := maps.Clone(many)
	more["100"] = "\x00" // not checked anymore
	long := strings.Repeat("ñ", 200)
	type input = formsvc.CampaignInput
	w := newWorld(t)
	made := w.campaign()
	for _, c := range []struct {
		in   input
		want []string
	}{
		{input{Title: " \n\u200b"}, []string{"/title required"}},
		{input{
			Title: strings.Repeat("é", 500), Description: strings.Repeat("🌍", 10_000), Status: formsvc.CampaignClosed,
			Metadata: map[string]string{long: strings.Repeat("ñ", 2_000)},
		}, nil},
		{input{
			Title: strings.Repeat("é", 501), Description: strings.Repeat("x", 10_001),
			Metadata: map[string]string{long + "x": "", "a": strings.Repeat("ñ", 2_001)},
		}, []string{"/title too_long", "/description too_long", "/metadata/a too_long", "/metadata too_long"}},
		{input{Title: "a\x00", Description: "\xed\xa0\x80", Metadata: map[string]string{"a\x00": "\x00", "\xff": "\xff"}}, []string{
			"/title nul_not_allowed", "/description invalid_utf8", "/metadata nul_not_allowed", "/metadata invalid_utf8",
		}},
		{input{Title: "x", Status: "Open"}, []string{"/status invalid_value"}},
		{input{Title: "x", Metadata: many}, nil},
		{input{Title: "x", Metadata: more}, []string{"/metadata too_many"}},
		{input{Title: "x", Metadata: map[string]string{"a/b~c": "\xff", "~1": "\xff"}}, []string{
			"/metadata/a~1b~0c invalid_utf8", "/metadata/~01 invalid_utf8",
		}},
		{input{Title: "x", OpensAt: at(1970), ClosesAt: at(9999)}, nil},
		{input{Title: "x", OpensAt: at(1969)}, []string{"/opensAt out_of_range"}},
		{input{Title: "x", ClosesAt: at(10_000)}, []string{"/closesAt out_of_range"}},
		{input{Title: "x", ClosesAt: at(1971)}, nil},
		{input{Title: "x", OpensAt: at(2026), ClosesAt: at(2026)}, []string{"/closesAt out_of_range"}},
		{input{Title: "x", OpensAt: at(2027), ClosesAt: at(2026)}, []string{"/closesAt out_of_range"}},
		{ // closes in the millisecond that it opens in
			input{Title: "x", OpensAt: at(2026), ClosesAt: at(2026).Add(999 * time.Microsecond)},
			[]string{"/closesAt out_of_range"},
		},
		{ // everything in the order of the input
			input{
				Description: "\x00", Status: "x", OpensAt: at(1969), ClosesAt: at(1968),
				Modules: []formsvc.Module{{Type: "x"}}, Metadata: map[string]string{"": "", "b": "\x00", "a": "\xff"},
			},
			[]string{
				"/title required", "/description nul_not_allowed", "/status invalid_value", "/opensAt out_of_range",
				"/closesAt out_of_range", "/closesAt out_of_range", "/modules/0/name required", "/modules/0/type invalid_value",
				"/metadata/ required", "/metadata/a invalid_utf8", "/metadata/b nul_not_allowed",
			},
		},
	} {
		wantFaults(t, failure(w.svc.Campaigns.Create(w.ctx, w.account, c.in)), c.want...)
		wantFaults(t, failure(w.svc.Campaigns.Replace(w.ctx, made.Key(), c.in)), c.want...)
	}
}

func TestCampaignDefaults(t *testing.T) {
	w := newWorld(t)
	w.clock.set(start().Add(456 * time.Microsecond))
	in := formsvc.CampaignInput{Title: "x", Modules: []formsvc.Module{{Name: "a"}}}
	c := must(w.svc.Campaigns.Create(w.ctx, w.account, in))
	want := formsvc.Campaign{
		ID: c.ID, AccountID: w.account, Version: 1, CreatedAt: start(), UpdatedAt: start(), // truncated to milliseconds
		CampaignInput: formsvc.CampaignInput{
			Title: "x", Status: formsvc.CampaignOpen, Modules: []formsvc.Module{{Name: "a", Type: formsvc.TextModule}},
		},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("made %+v\nwant %+v", c, want)
	}
	equal(t, in.Modules[0].Type, "", "the caller's modules were changed: %v")
	if got, err := w.svc.Campaigns.Get(w.ctx, c.Key()); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Get returns %+v, %v", got, err)
	}
}

// A caller may change a returned campaign without an effect on the service.
func TestChangingAReturnedCampaignHasNoEffect(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	in := formsvc.CampaignInput{Title: "x", Modules: []formsvc.Module{
		{Name: "a", Type: formsvc.ChoiceModule, Options: []string{"yes"}},
	}}
	got := must(w.svc.Campaigns.Replace(w.ctx, c.Key(), in))
	got.Modules[0].Options[0], in.Modules[0].Options[0] = "no", "no"
	got.Modules[0].Multiple = true
	_, err := w.submit(&c, answer("a", "no", "no"))
	wantFaults(t, err, "/responses/a/value too_many", "/responses/a/value/0 unknown_option", "/responses/a/value/1 unknown_option")
	if _, err := w.submit(&c, answer("a", "yes")); err != nil {
		t.Error("an option of the campaign:", err)
	}
}
