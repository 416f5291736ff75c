package storagetest

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// The tests that make every call include every method.
func TestCalls(t *testing.T) {
	known := map[string]bool{"Close": true, "Notify": true} // these have their own tests
	for _, c := range calls() {
		known[c.name] = true
	}
	store := reflect.TypeFor[Store]()
	for i := range store.NumMethod() {
		if name := store.Method(i).Name; !known[name] {
			t.Errorf("no call of %s", name)
		}
	}
}

// The comparison finds every difference that matters, and no other.
func TestDifference(t *testing.T) {
	type inner struct {
		List []string
		Map  map[string]string
	}
	type record struct {
		Name  string
		Empty inner
		Inner inner
		At    time.Time
	}
	base := func() record {
		return record{Name: "n", Inner: inner{[]string{"a", "b"}, map[string]string{"k": "v"}}, At: start()}
	}
	for want, change := range map[string]func(*record){
		"":       func(r *record) { r.Empty = inner{[]string{}, map[string]string{}} },
		"Name:":  func(r *record) { r.Name = "m" },
		"\"c\",": func(r *record) { r.Inner.List[1] = "c" },
		"List:":  func(r *record) { r.Inner.List = nil },
		"\"j\":": func(r *record) { r.Inner.Map["j"] = "v" },
		"\"l\":": func(r *record) { r.Inner.Map = map[string]string{"l": "v"} },
		"At:":    func(r *record) { r.At = r.At.In(time.FixedZone("", 0)) },
	} {
		got := base()
		change(&got)
		if d := difference("x", got, base()); !strings.Contains(d, want) || (d == "") != (want == "") {
			t.Errorf("the difference is %q, want %q", d, want)
		}
	}
}
