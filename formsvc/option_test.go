package formsvc_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

func TestModuleJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`["a","b"]`, `["a",{"label":"Bee","value":"b"}]`, `[{"label":"b","value":"b"},""]`, `[{"label":"x <&>","value":""}]`, `[]`,
	} {
		var m formsvc.Module
		in := `{"name":"q","options":` + text + `,"label":"","help":"","placeholder":"","type":"choice","required":false,"maxLength":0,"multiple":false,"showIf":null}`
		noError(t, json.Unmarshal([]byte(in), &m))
		var want, got any
		noError(t, errors.Join(json.Unmarshal([]byte(in), &want), json.Unmarshal(must(json.Marshal(m)), &got)))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	for _, text := range []string{`[1]`, `[{"label":"x"}]`, `[null]`, `{}`} {
		if json.Unmarshal([]byte(`{"options":`+text+`}`), new(formsvc.Module)) == nil {
			t.Errorf("%s is read", text)
		}
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, test := range []struct {
		options []string
		labels  map[string]string
		want    string
	}{
		{[]string{"a", "b"}, map[string]string{"a": "A", "b": "B"}, ""},
		{[]string{"a"}, map[string]string{"a": "a"}, ""},
		{[]string{"a", "b"}, map[string]string{"a": "b"}, "/modules/0/options/1 duplicate"},
		{[]string{"a", "b"}, map[string]string{"a": "x", "b": "x"}, "/modules/0/options/1 duplicate"},
		{[]string{"a"}, map[string]string{"a": " "}, "/modules/0/options/0/label required"},
		{[]string{"a"}, map[string]string{"a": "x\x00y"}, "/modules/0/options/0/label nul_not_allowed"},
		{[]string{"a"}, map[string]string{"c": "C"}, "/modules/0/options unknown_option"},
	} {
		_, err := w.svc.Campaigns.Create(t.Context(), w.account, formsvc.CampaignInput{
			Title: "T", Modules: []formsvc.Module{{Name: "q", Type: formsvc.ChoiceModule, Options: test.options, Labels: test.labels}},
		})
		got := ""
		if invalid, ok := errors.AsType[*formsvc.ValidationError](err); ok {
			got = invalid.Fields[0].Pointer + " " + invalid.Fields[0].Code
		}
		equal(t, got, test.want, "%q with %q: %s", test.options, test.labels)
	}
}
