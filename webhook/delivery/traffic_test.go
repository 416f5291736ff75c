package delivery

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// newTestTraffic returns a traffic with the given options and defaults for the
// rest.
func newTestTraffic(t *testing.T, o Options) *traffic {
	t.Helper()
	o, err := withDefaults(&o)
	if err != nil {
		t.Fatal(err)
	}
	return newTraffic(newLimits(&o))
}

// to returns an endpoint. Its account is what is before the first digit.
func to(id string) Endpoint {
	return Endpoint{ID: id, Account: strings.TrimRight(id, "0123456789")}
}

func ready(ids ...string) []Endpoint {
	endpoints := make([]Endpoint, len(ids))
	for i, id := range ids {
		endpoints[i] = to(id)
	}
	return endpoints
}

// Whoever has least in flight is next, whatever the turn: among accounts, and
// among the endpoints of one.
func TestWhoHoldsLeastGoesFirst(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{"hangs1", "works1"}, {"a1", "a2"}} {
		tr := newTestTraffic(t, Options{Concurrency: 20})
		tr.prove(8, pair[:]...)
		a := newAgenda(ready(pair[:]...))
		slots := tr.fill(a, 1)
		if want := pair[0] + ":7 " + pair[1] + ":7"; counts(slots) != want {
			t.Fatalf("%s, want %s", counts(slots), want)
		}
		for range 20 {
			for _, s := range slots[pair[1]] {
				tr.end(s, saysYes)
				tr.leave(s)
			}
			if slots = tr.fill(a, 1); counts(slots) != pair[1]+":7" {
				t.Fatalf("%s beside those that hang", counts(slots))
			}
		}
	}
}

// prove makes endpoints healthy, with a window of that size.
func (t *traffic) prove(window int, ids ...string) {
	for _, id := range ids {
		h := t.book(id)
		h.window, h.proven = window, true
	}
}

// fill claims all that a plan asks for, each of that size, and returns the slots
// by endpoint.
func (t *traffic) fill(a *agenda, size int) map[string][]*slot {
	shares := t.plan(a)
	var claims []Claim
	for _, s := range shares {
		for range s.N {
			claims = append(claims, Claim{Endpoint: s.Endpoint, Size: size})
		}
	}
	got := make(map[string][]*slot)
	for i, s := range t.take(a, shares, claims) {
		got[claims[i].Endpoint] = append(got[claims[i].Endpoint], s)
	}
	return got
}

// counts returns how many slots each endpoint got.
func counts(got map[string][]*slot) string {
	parts := make([]string, 0, len(got))
	for _, id := range slices.Sorted(maps.Keys(got)) {
		parts = append(parts, fmt.Sprintf("%s:%d", id, len(got[id])))
	}
	return strings.Join(parts, " ")
}

func TestSharesAreFair(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		fast    int
		windows map[string]int
		want    string
	}{
		{"one endpoint", 16, map[string]int{"a1": 8}, "a1:8"},
		{"its window", 16, map[string]int{"a1": 3}, "a1:3"},
		{"accounts before endpoints", 16, map[string]int{"a1": 8, "a2": 8, "a3": 8, "b1": 8}, "a1:3 a2:3 a3:3 b1:5"},
		{"endpoints of an account", 20, map[string]int{"a1": 8, "a2": 8, "b1": 8}, "a1:5 a2:4 b1:7"},
		{"what one cannot use goes to others", 20, map[string]int{"a1": 1, "b1": 2, "c1": 8}, "a1:1 b1:2 c1:8"},
		{"more accounts than room", 2, map[string]int{"a1": 8, "b1": 8, "c1": 8}, "a1:1 b1:1"},
		{"nobody has more than is left", 8, map[string]int{"a1": 8}, "a1:4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tr := newTestTraffic(t, Options{Concurrency: tt.fast, PerEndpoint: 8})
			for id, window := range tt.windows {
				tr.prove(window, id)
			}
			got := tr.fill(newAgenda(ready(slices.Sorted(maps.Keys(tt.windows))...)), 1)
			if counts(got) != tt.want {
				t.Errorf("got %s, want %s", counts(got), tt.want)
			}
		})
	}
}

// sequence claims one at a time, n times, and returns who got it.
func sequence(tr *traffic, n int, again bool, ids ...string) string {
	var served []string
	a := newAgenda(ready(ids...))
	for range n {
		if again {
			a = newAgenda(ready(ids...))
		}
		got := tr.fill(a, 1)
		served = append(served, slices.Sorted(maps.Keys(got))...)
		for _, slots := range got {
			for _, s := range slots {
				tr.end(s, saysYes)
				tr.leave(s)
			}
		}
	}
	return strings.Join(served, " ")
}

// The next claim goes on where the last one stopped, whether or not the queue
// was asked in between.
func TestTurnsGoOn(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		tr := newTestTraffic(t, Options{Concurrency: 1})
		want := "a1 b1 c1 a2 b1 c1 a3 b1 c1 a1"
		if got := sequence(tr, 10, again, "a1", "a2", "a3", "b1", "c1"); got != want {
			t.Errorf("again %v: served %s, want %s", again, got, want)
		}
	}
}

// Whoever a plan had no room for goes first when there is.
func TestTurnIsKeptWithoutRoom(t *testing.T) {
	t.Parallel()
	tr := newTestTraffic(t, Options{Concurrency: 4, PerEndpoint: 4})
	tr.prove(1, "x1")
	a := newAgenda(ready("a1", "b1", "c1", "x1"))
	// a and b fill the half of those that are not proven.
	got := tr.fill(a, 1)
	if counts(got) != "a1:1 b1:1 x1:1" {
		t.Fatal(counts(got))
	}
	tr.end(got["a1"][0], saysNo)
	tr.leave(got["a1"][0])
	if got := tr.fill(a, 1); counts(got) != "c1:1" {
		t.Errorf("got %s, want c1", counts(got))
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	type step struct {
		verdict verdict
		late    bool
	}
	yes, no, slowYes, slowNo := step{saysYes, false}, step{saysNo, false}, step{saysYes, true}, step{saysNo, true}
	broken, over := step{broke, false}, step{tookTooLong, true}
	for _, tt := range []struct {
		name         string
		steps        []step
		window       int
		proven, slow bool
	}{
		{"unknown", nil, 1, false, false},
		{"grows with each success", []step{yes, yes}, 3, true, false},
		{"up to PerEndpoint", []step{yes, yes, yes, yes, yes, yes}, 4, true, false},
		{"slow successes count too", []step{slowYes, slowYes}, 3, true, true},
		{"back to one", []step{yes, yes, broken}, 1, false, false},
		{"timeout", []step{yes, yes, over}, 1, false, true},
		{"timeout of a short Timeout", []step{yes, {tookTooLong, false}}, 1, false, true},
		{"recovers", []step{yes, over, yes, yes}, 3, true, false},
		{"a status keeps it from growing", []step{yes, no, no}, 2, true, false},
		{"a status proves nothing", []step{no, no}, 1, false, false},
		{"a slow status", []step{yes, slowNo}, 2, true, true},
		{"a quick status after it", []step{yes, slowNo, no}, 2, true, false},
		{"a status after a failure", []step{yes, yes, broken, no}, 1, false, false},
		{"not sent", []step{yes, over, {saysNothing, true}}, 1, false, true},
	} {
		h := &health{window: 1}
		for _, s := range tt.steps {
			h.judge(s.verdict, s.late, 4)
		}
		if h.window != tt.window || h.proven != tt.proven || h.slow != tt.slow {
			t.Errorf("%s: window %d, proven %v, slow %v", tt.name, h.window, h.proven, h.slow)
		}
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for class, want := range map[string]verdict{
		"": saysYes, ClassStatus: saysNo, ClassRedirect: saysNo, ClassTimeout: tookTooLong,
		ClassDNS: broke, ClassConnect: broke, ClassTLS: broke, ClassRefused: broke, ClassReset: broke, ClassTransport: broke,
		ClassCanceled: saysNothing, ClassURL: saysNothing, ClassSecret: saysNothing, ClassPayload: saysNothing,
	} {
		if got := verdictOf(class); got != want {
			t.Errorf("%q: %v, want %v", class, got, want)
		}
	}
}

// A window of one is the probe of an endpoint that failed.
func TestProbe(t *testing.T) {
	t.Parallel()
	tr := newTestTraffic(t, Options{})
	tr.prove(8, "a1")
	a := newAgenda(ready("a1"))
	got := tr.fill(a, 1)["a1"]
	if len(got) != 8 {
		t.Fatalf("%d claimed", len(got))
	}
	for i, s := range got {
		if tr.end(s, broke); i < 7 && len(tr.plan(a)) != 0 {
			t.Fatalf("claimed beside %d that run", 7-i)
		}
		tr.leave(s)
	}
	if got := tr.fill(a, 1); counts(got) != "a1:1" {
		t.Errorf("then %s, want one", counts(got))
	}
}

// Outcomes that wait to be recorded count only when there are many.
func TestRecordingCountsBeyondSpare(t *testing.T) {
	t.Parallel()
	tr := newTestTraffic(t, Options{Concurrency: 64, PerEndpoint: 4})
	tr.prove(4, "a1")
	a := newAgenda(ready("a1"))
	total := 0
	for range 10 {
		for _, s := range tr.fill(a, 1)["a1"] {
			total++
			tr.end(s, saysNo)
		}
	}
	if total != 16 {
		t.Errorf("%d outcomes wait, want 4 and 12 to spare", total)
	}
}

func TestEveryFourthClaimIsLateFirst(t *testing.T) {
	t.Parallel()
	tr := newTestTraffic(t, Options{})
	got := ""
	for range 12 {
		a := newAgenda(ready("a1", "b1"))
		shares := tr.plan(a)
		for _, s := range shares {
			got += map[bool]string{true: "L", false: "."}[s.LateFirst]
		}
		tr.take(a, shares, nil)
	}
	if want := strings.Repeat("......LL", 3); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestEndpointsWithErrAreLeftOut(t *testing.T) {
	t.Parallel()
	tr := newTestTraffic(t, Options{})
	endpoints := ready("a1", "a2")
	endpoints[0].Err = errors.New("no key")
	if got := tr.fill(newAgenda(endpoints), 1); counts(got) != "a2:1" {
		t.Errorf("got %s", counts(got))
	}
}

// Endpoints that returned less than their share are not asked again, the others
// are.
func TestExhaustedEndpoints(t *testing.T) {
	t.Parallel()
	tr := newTestTraffic(t, Options{Concurrency: 9, PerEndpoint: 4})
	tr.prove(4, "a1", "b1")
	a := newAgenda(ready("a1", "b1"))
	shares := tr.plan(a)
	if want := []Share{{Endpoint: "a1", N: 3}, {Endpoint: "b1", N: 3}}; !slices.Equal(shares, want) {
		t.Fatalf("shares %v, want %v", shares, want)
	}
	tr.take(a, shares, []Claim{{Endpoint: "a1"}, {Endpoint: "b1"}, {Endpoint: "b1"}, {Endpoint: "b1"}})
	if got := tr.fill(a, 1); counts(got) != "b1:1" {
		t.Errorf("then %s, want one more for b1", counts(got))
	}
	if some, soon := tr.more(a); !some || !soon {
		t.Errorf("more: %v %v", some, soon)
	}
}

// A claim that nobody asked for is counted like any other.
func TestUnaskedClaims(t *testing.T) {
	t.Parallel()
	tr := newTestTraffic(t, Options{Concurrency: 2})
	a := newAgenda(ready("a1"))
	slots := tr.take(a, tr.plan(a), []Claim{{Endpoint: "a1", Size: 5}, {Endpoint: "a1", Size: -5}, {Endpoint: "x", Size: 7}})
	if tr.used[fastSlots] != 3 || tr.used[allBytes] != 12 || tr.inFlight != [laneCount]int{3, 0} {
		t.Errorf("used %v, in flight %v", tr.used, tr.inFlight)
	}
	for _, s := range slots {
		tr.end(s, saysNothing)
		tr.leave(s)
	}
	if !tr.isIdle() || tr.used != [pools]int64{} || tr.inFlight != [laneCount]int{} {
		t.Errorf("left %v, in flight %v", tr.used, tr.inFlight)
	}
}

// What is known is bounded, and the healthy and busy are forgotten last.
func TestKnowledgeIsBounded(t *testing.T) {
	t.Parallel()
	tr := newTestTraffic(t, Options{})
	tr.known = 100
	tr.prove(8, "good1", "good2")
	busy := tr.fill(newAgenda(ready("busy1")), 1)["busy1"][0]
	for i := range 1_000 {
		id := fmt.Sprint("x", i, "y")
		for _, s := range tr.fill(newAgenda([]Endpoint{{ID: id, Account: id}}), 1)[id] {
			tr.end(s, broke)
			tr.leave(s)
		}
		if len(tr.endpoints) > 100 || len(tr.accounts) > 200 {
			t.Fatalf("%d endpoints and %d accounts known", len(tr.endpoints), len(tr.accounts))
		}
	}
	for _, id := range []string{"good1", "good2", "busy1"} {
		if tr.endpoints[id] == nil {
			t.Errorf("%s was forgotten", id)
		}
	}
	tr.end(busy, saysYes)
	tr.leave(busy)
	if !tr.isIdle() {
		t.Error("not idle")
	}
}

// Nothing depends on the order in which the queue returns the endpoints.
func TestOrderOfReady(t *testing.T) {
	t.Parallel()
	ids := []string{"a1", "a2", "b1", "c1", "c2", "c3"}
	plan := func(ids []string) []Share {
		tr := newTestTraffic(t, Options{Concurrency: 8})
		return tr.plan(newAgenda(ready(ids...)))
	}
	want := plan(ids)
	slices.Reverse(ids)
	if got := plan(ids); !slices.Equal(got, want) || !slices.IsSortedFunc(want[:3], func(a, b Share) int {
		return cmp.Compare(a.Endpoint, b.Endpoint)
	}) {
		t.Errorf("%v and %v", got, want)
	}
}
