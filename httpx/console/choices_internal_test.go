package console

import (
	"fmt"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// A choice that is renamed keeps its value if it must; values of new ones are free.
func TestChoose(t *testing.T) {
	for _, test := range []struct {
		was    []string
		labels map[string]string
		typed  []string
		keeps  bool
		want   string
	}{
		{[]string{"a", "b", "c"}, nil, []string{"a", "x", "c"}, true, "[a b c] map[b:x] map[]"},
		{[]string{"a", "b", "c"}, nil, []string{"a", "x", "c"}, false, "[a x c] map[] map[b:x]"},
		{[]string{"d"}, map[string]string{"d": "Dog"}, []string{"Dogs"}, false, "[d] map[d:Dogs] map[]"},
		{[]string{"Dog"}, map[string]string{"Dog": "Hound"}, []string{"Hound", "Dog"}, true, "[Dog Dog_2] map[Dog:Hound Dog_2:Dog] map[]"},
		{[]string{"Dog"}, map[string]string{"Dog": "Hound"}, []string{"Hound", "Dog", "Dog_2"}, true, "[Dog Dog_2 Dog_2_2] map[Dog:Hound Dog_2:Dog Dog_2_2:Dog_2] map[]"},
		{[]string{"Dog"}, map[string]string{"Dog": "Hound"}, []string{"Dog", "Hound"}, true, "[Dog_2 Dog] map[Dog:Hound Dog_2:Dog] map[]"},
		{[]string{"a", "b", "b2", "c"}, nil, []string{"a", "x", "c"}, true, "[a x c] map[] map[]"},
		{[]string{"a", "b", "c"}, nil, []string{"x", "y", "z"}, true, "[a b c] map[a:x b:y c:z] map[]"},
		{[]string{"a", "b"}, nil, []string{"b", "x", "a"}, true, "[b x a] map[] map[]"},
		{[]string{" a "}, nil, []string{"a", "a"}, true, "[ a  a] map[] map[]"},
		{[]string{"a"}, map[string]string{"a": "a"}, []string{"a", "b"}, true, "[a b] map[a:a] map[]"},
		{nil, nil, []string{"a"}, true, "[a] map[] map[]"},
		{[]string{"a"}, nil, nil, true, "[] map[] map[]"},
	} {
		var m formsvc.Module
		was := formsvc.Module{Type: formsvc.ChoiceModule, Options: test.was, Labels: test.labels}
		renamed := choose(&m, &was, test.typed, func(string) bool { return test.keeps })
		if got := fmt.Sprint(m.Options, m.Labels, renamed); got != test.want {
			t.Errorf("%q %v typed %q: %s, want %s", test.was, test.labels, test.typed, got, test.want)
		}
	}
}
