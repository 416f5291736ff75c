package httpx_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
)

// mostUnseen is how many of a hundred documented answers, and codes, may be answers
// that no test gets.
const mostUnseen = 5

// coverage is what the tests of this package have seen of the document.
var coverage tally

type tally struct {
	mu   sync.Mutex
	what map[string]bool
}

func (t *tally) see(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.what == nil {
		t.what = map[string]bool{}
	}
	t.what[what] = true
}

func (t *tally) saw(what string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.what[what]
}

// A gap is a kind of thing in the document, of which not enough was seen.
type gap struct {
	kind   string
	unseen []string
	of     int
	most   int // of a hundred
}

// add notes one thing of the kind.
func (g *gap) add(t *tally, what string) {
	g.of++
	if !t.saw(what) {
		g.unseen = append(g.unseen, what)
	}
}

func (g *gap) tooLarge() bool { return len(g.unseen)*100 > g.of*g.most }

// gaps compares what was seen with all that is documented.
func (t *tally) gaps(c *contract) []gap {
	var (
		operations = gap{kind: "operations"}
		answers    = gap{kind: "answers", most: mostUnseen}
		codes      = gap{kind: "codes", most: mostUnseen}
		headers    = gap{kind: "headers"}
		events     = gap{kind: "events"}
		members    = gap{kind: "members"}
	)
	anywhere, named := map[string]bool{}, map[string]bool{}
	for _, o := range c.operations {
		good := false
		for status, a := range o.answers {
			what := fmt.Sprintf("%s %d", o.id, status)
			good = good || status < http.StatusBadRequest && t.saw(what)
			answers.add(t, what)
			for _, code := range a.codes {
				anywhere[code] = anywhere[code] || t.saw(what+" "+code)
			}
			for name := range a.headers {
				named["header "+name] = true
			}
		}
		operations.of++
		if !good {
			operations.unseen = append(operations.unseen, o.id)
		}
	}
	for code, seen := range anywhere {
		if codes.of++; !seen {
			codes.unseen = append(codes.unseen, code)
		}
	}
	for name := range named {
		headers.add(t, name)
	}
	for event := range c.webhooks {
		events.add(t, "event "+event)
	}
	for _, m := range c.members {
		members.add(t, "member "+m.at)
	}
	events.add(t, "event truncated")
	events.add(t, "event test")
	return []gap{operations, answers, codes, headers, members, events}
}

// report tells what was not seen, and whether it is too much.
func (t *tally) report(w io.Writer, c *contract, always bool) (ok bool) {
	ok = true
	for _, g := range t.gaps(c) {
		if g.tooLarge() {
			ok = false
		} else if !always {
			continue
		}
		slices.Sort(g.unseen)
		_, _ = fmt.Fprintf(w, "contract: %d of %d %s seen", g.of-len(g.unseen), g.of, g.kind)
		if g.tooLarge() {
			_, _ = fmt.Fprintf(w, ", which is less than %d %%", 100-g.most)
		}
		_, _ = fmt.Fprintln(w)
		for _, what := range g.unseen {
			_, _ = fmt.Fprintln(w, "\tnot seen:", what)
		}
	}
	return ok
}
