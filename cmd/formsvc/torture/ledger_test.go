package torture_test

import (
	"fmt"
	"slices"
	"sync"
)

// A kind is the kind of operation of an entry.
type kind string

const (
	create   kind = "create"   // a response
	complete kind = "complete" // its status
	upload   kind = "upload"   // a file of it
	comment  kind = "comment"  // on it
	sign     kind = "sign"     // it
)

// An outcome is what the client knows about an operation.
type outcome int

const (
	unknown outcome = iota // no response, an incomplete one or a 5xx: it may have happened once
	done                   // a 2xx: it happened
	refused                // a 4xx: it did not happen
)

// An entry is one operation that a client wants, with any number of requests.
type entry struct {
	kind   kind
	marker string // unique, and stored with the record
	of     string // the UUID of the response that it is about, except for create
	sha256 string // of the bytes of an upload, in hexadecimal
	key    string // the Idempotency-Key of all its requests; "" if there is only one request

	tries   int
	outcome outcome
	status  int    // of the last response
	uuid    string // of the created record, once known
}

// A ledger records the intents of clients and the responses they got. It is outside of the attacked processes, and safe for
// concurrent use.
type ledger struct {
	mu      sync.Mutex
	entries map[string]*entry // by marker
	wrong   []string
}

// intend records an entry before each of its requests.
func (l *ledger) intend(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.entries[e.marker]; other != nil && other != e {
		panic("the marker " + e.marker + " is used twice")
	}
	l.entries[e.marker] = e
	e.tries++
}

// answer records the result of a request: the status of its response, or 0, and the UUID if there is one. It is a fault if
// it contradicts an earlier one.
func (l *ledger) answer(e *entry, status int, uuid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.uuid != "" && uuid != "" && e.uuid != uuid {
		l.wrong = append(l.wrong, fmt.Sprintf("%s %q was answered twice, with %s and with %s", e.kind, e.marker, e.uuid, uuid))
	}
	if e.outcome == done {
		return // that it was done once stays true
	}
	e.outcome, e.status = unknown, status
	switch {
	case status >= 200 && status < 300:
		e.outcome = done
	case status >= 400 && status < 500 && e.tries == 1: // otherwise an earlier request may have been carried out
		e.outcome = refused
	}
	if uuid != "" {
		e.uuid = uuid
	}
}

// fault records a response that is wrong by itself.
func (l *ledger) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

func (l *ledger) faults() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.wrong)
}

// all returns a copy of all entries, in no order.
func (l *ledger) all() []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]entry, 0, len(l.entries))
	for _, e := range l.entries {
		list = append(list, *e)
	}
	return list
}
