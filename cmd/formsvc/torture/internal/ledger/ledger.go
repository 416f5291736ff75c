// Package ledger keeps what clients meant to do and what they were told, outside of
// the service that is attacked: an intent is in a file before its request is
// sent, and an answer when it is read.
package ledger

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// A Kind says what an entry asked for.
type Kind string

// What clients do.
const (
	Create   Kind = "create"   // a response
	Complete Kind = "complete" // its status
	Upload   Kind = "upload"   // a file of it
	Comment  Kind = "comment"  // on it
	Sign     Kind = "sign"     // it
)

// An Outcome is what the client knows of a request.
type Outcome string

const (
	// Unknown is what no answer says, a broken one, or one of 5xx. It may have
	// happened, once.
	Unknown Outcome = ""
	// Done was answered 2xx. It happened.
	Done Outcome = "done"
	// Refused was answered 4xx. It did not happen.
	Refused Outcome = "refused"
)

// An Entry is one thing that a client wanted, however often it asked for it. The
// marker is its own: nobody uses it again.
type Entry struct {
	Kind   Kind   `json:"kind"`
	Marker string `json:"marker"`
	// Of is the UUID of the response that it is about, but for Create.
	Of string `json:"of,omitempty"`
	// SHA256 is of the bytes of an Upload, in hexadecimal.
	SHA256 string `json:"sha256,omitempty"`
	// Key is the Idempotency-Key that all its requests have, or "" if there is one
	// request only.
	Key string `json:"key,omitempty"`

	// Tries is how many requests were made for it.
	Tries   int     `json:"tries"`
	Outcome Outcome `json:"outcome,omitempty"`
	// UUID is of the record that was made, once it is known.
	UUID string `json:"uuid,omitempty"`
	// Status of the last answer, 0 if there was none.
	Status int `json:"status,omitempty"`
}

// A Ledger is safe for concurrent use. Its file has a line of JSON for each
// intent and each answer. It survives the end of this process, not that of the
// machine: the machine is not attacked.
type Ledger struct {
	mu      sync.Mutex
	file    *os.File
	entries map[string]*Entry // by marker
	faults  []string
}

// New makes a ledger with a new file.
func New(path string) (*Ledger, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &Ledger{file: f, entries: make(map[string]*Entry)}, nil
}

// Read returns the ledger of a file, to check it again. It can't be written to.
func Read(path string) (*Ledger, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	l := &Ledger{entries: make(map[string]*Entry)}
	dec := json.NewDecoder(bufio.NewReader(f))
	for {
		var e Entry
		switch err := dec.Decode(&e); {
		case errors.Is(err, io.EOF):
			return l, nil
		case err != nil:
			return nil, fmt.Errorf("ledger: %s: %w", path, err)
		}
		l.entries[e.Marker] = &e
	}
}

// Close closes the file.
func (l *Ledger) Close() error { return l.file.Close() }

// Intend writes down an entry before its first request.
func (l *Ledger) Intend(e Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries[e.Marker] != nil {
		return fmt.Errorf("ledger: the marker %q was used before", e.Marker)
	}
	e.Tries = 1
	l.entries[e.Marker] = &e
	return l.write(&e)
}

// Again writes down that an entry is asked for once more.
func (l *Ledger) Again(marker string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[marker]
	if e == nil {
		return fmt.Errorf("ledger: no intent %q", marker)
	}
	e.Tries++
	return l.write(e)
}

// Answer writes down what became of a request: the status of its answer, or 0, and
// the UUID if the answer has one. What contradicts an earlier answer is a fault.
func (l *Ledger) Answer(marker string, status int, uuid string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[marker]
	if e == nil {
		return fmt.Errorf("ledger: no intent %q", marker)
	}
	outcome := Unknown
	switch {
	case status >= 200 && status < 300:
		outcome = Done
	case status >= 400 && status < 500:
		outcome = Refused
	}
	if e.UUID != "" && uuid != "" && e.UUID != uuid {
		l.faults = append(l.faults, fmt.Sprintf("%s %q was answered twice, with %s and with %s", e.Kind, marker, e.UUID, uuid))
	}
	if e.Outcome == Done {
		return nil // that it was done once stays true
	}
	// A refusal tells of one request. An earlier one may have been carried out.
	if outcome == Refused && e.Tries > 1 {
		outcome = Unknown
	}
	e.Outcome, e.Status = outcome, status
	if uuid != "" {
		e.UUID = uuid
	}
	return l.write(e)
}

// Fault notes an answer that breaks a promise by itself.
func (l *Ledger) Fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

// Faults returns what was noted.
func (l *Ledger) Faults() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.faults...)
}

// Entries returns a copy of all entries, in no order.
func (l *Ledger) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Entry, 0, len(l.entries))
	for _, e := range l.entries {
		list = append(list, *e)
	}
	return list
}

func (l *Ledger) write(e *Entry) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = l.file.Write(append(b, '\n'))
	return err
}
