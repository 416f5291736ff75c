package httpx_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
)

// coverage counts what the tests of this package have seen of the document.
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

// A gap is a kind of element in the document, with those that weren't seen.
type gap struct {
	kind   string
	unseen []string
	of     int
}

// add adds one element.
func (g *gap) add(t *tally, what string) {
	g.of++
	if !t.saw(what) {
		g.unseen = append(g.unseen, what)
	}
}

// gaps compares what was seen with the document.
func (t *tally) gaps(c *contract) []gap {
	var (
		operations = gap{kind: "operations"}
		answers    = gap{kind: "answers"}
		codes      = gap{kind: "codes"}
		headers    = gap{kind: "headers"}
		events     = gap{kind: "events"}
		members    = gap{kind: "members"}
	)
	named := map[string]bool{}
	for _, o := range c.operations {
		good := false
		for status, a := range o.answers {
			what := fmt.Sprintf("%s %d", o.id, status)
			good = good || status < http.StatusBadRequest && t.saw(what)
			answers.add(t, what)
			for _, code := range a.codes {
				codes.add(t, what+" "+code)
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

// report prints the gaps, and reports whether there are none.
func (t *tally) report(w io.Writer, c *contract, always bool) (ok bool) {
	ok = true
	for _, g := range t.gaps(c) {
		if len(g.unseen) > 0 {
			ok = false
		} else if !always {
			continue
		}
		_, _ = fmt.Fprintf(w, "contract: %d of %d %s seen\n", g.of-len(g.unseen), g.of, g.kind)
		slices.Sort(g.unseen)
		for _, what := range g.unseen {
			_, _ = fmt.Fprintln(w, "\tnot seen:", what)
		}
	}
	return ok
}
