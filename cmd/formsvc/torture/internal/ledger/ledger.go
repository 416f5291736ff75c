// Package ledger records the intents of clients and the responses they got, outside of the attacked service. An intent is
// written to a file before its request is sent, and a response when it is read.
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

// A Kind is the kind of operation of an entry.
type Kind string

// The operations of clients.
const (
	Create   Kind = "create"   // a response
	Complete Kind = "complete" // its status
	Upload   Kind = "upload"   // a file of it
	Comment  Kind = "comment"  // on it
	Sign     Kind = "sign"     // it
)

// An Outcome is what the client knows about a request.
type Outcome string

const (
	// Unknown means no response, an incomplete one or a 5xx. The operation may have happened once.
	Unknown Outcome = ""
	// Done means a 2xx: the operation happened.
	Done Outcome = "done"
	// Refused means a 4xx: the operation did not happen.
	Refused Outcome = "refused"
)

// An Entry is one operation that a client wanted, with any number of requests. Its marker is unique.
type Entry struct {
	Kind   Kind   `json:"kind"`
	Marker string `json:"marker"`
	// Of is the UUID of the response that it is about, except for Create.
	Of string `json:"of,omitempty"`
	// SHA256 is the hash of the bytes of an Upload, in hexadecimal.
	SHA256 string `json:"sha256,omitempty"`
	// Key is the Idempotency-Key of all its requests, or "" if there is only one request.
	Key string `json:"key,omitempty"`

	// Tries is the number of requests.
	Tries   int     `json:"tries"`
	Outcome Outcome `json:"outcome,omitempty"`
	// UUID identifies the created record, once known.
	UUID string `json:"uuid,omitempty"`
	// Status of the last response, 0 if there was none.
	Status int `json:"status,omitempty"`
}

// A Ledger records entries. It is safe for concurrent use. Its file has a line of JSON for each intent and each response.
// The file survives the process but isn't synced, since the machine is not attacked.
type Ledger struct {
	mu      sync.Mutex
	file    *os.File
	entries map[string]*Entry // by marker
	faults  []string
}

// New creates a ledger with a new file.
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

// Intend records an entry before its first request.
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

// Again records another request for an entry.
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

// Answer records the result of a request: the status of its response, or 0, and the UUID if there is one. A contradiction
// of an earlier response is a fault.
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
	// A rejection is about one request. An earlier one may have been carried out.
	if outcome == Refused && e.Tries > 1 {
		outcome = Unknown
	}
	e.Outcome, e.Status = outcome, status
	if uuid != "" {
		e.UUID = uuid
	}
	return l.write(e)
}

// Fault records a response that is wrong by itself.
func (l *Ledger) Fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

// Faults returns the recorded faults.
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
