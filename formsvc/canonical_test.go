package formsvc_test

import (
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

func TestCanonicalAnswers(t *testing.T) {
	for _, x := range []struct {
		label string
		in    []formsvc.Answer
		want  string
	}{
		{"none", nil, `{}`},
		{"no value", []formsvc.Answer{answer("a")}, `{"a":{"value":[]}}`},
		{
			"values in their order, names sorted", []formsvc.Answer{answer("b", "2", "1", "2"), answer("a", ""), answer("B"), answer("10"), answer("9")},
			`{"10":{"value":[]},"9":{"value":[]},"B":{"value":[]},"a":{"value":[""]},"b":{"value":["2","1","2"]}}`,
		},
		{
			"sorted by UTF-16", []formsvc.Answer{answer("\uFFFD"), answer("\U0001F600"), answer("\uE000"), answer("z"), answer("\uD7FF"), answer("ö")},
			"{\"z\":{\"value\":[]},\"ö\":{\"value\":[]},\"\uD7FF\":{\"value\":[]},\"\U0001F600\":{\"value\":[]}," +
				"\"\uE000\":{\"value\":[]},\"\uFFFD\":{\"value\":[]}}",
		},
		{
			"escapes", []formsvc.Answer{answer("q\"\\/", "\b\t\n\f\r", "\x01\x1f\x0b\x7f\u0080\u2028<>&'é")},
			`{"q\"\\/":{"value":["\b\t\n\f\r","\u0001\u001f\u000b` + "\x7f\u0080\u2028<>&'é" + `"]}}`,
		},
		{"the name value", []formsvc.Answer{answer("value", "value"), answer("__proto__", "x")}, `{"__proto__":{"value":["x"]},"value":{"value":["value"]}}`},
	} {
		if got := must(formsvc.NewAnswers(x.in...).Canonical()); string(got) != x.want {
			t.Errorf("%s\n got %s\nwant %s", x.label, got, x.want)
		}
	}

	if got, err := formsvc.StoredAnswers(`{"a":`).Canonical(); err == nil {
		t.Errorf("of no JSON: %s", got)
	}
}
