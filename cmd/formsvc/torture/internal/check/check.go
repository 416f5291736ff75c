// Package check compares what clients know, what the service has stored, what receivers got and what is in the blob store.
// It compares plain records, so that tests can try it with planted faults.
package check

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/inbox"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/ledger"
)

// Stored is the content of the service.
type Stored struct {
	Responses []Response
	// Count is the campaign's number of responses.
	Count      int
	Files      []File
	Comments   []Comment
	Signatures []Signature
	// Events are the events of the feed, each with the bytes that are delivered.
	Events []json.RawMessage
}

// A Response as the API lists it.
type Response struct {
	UUID   string `json:"uuid"`
	Status string `json:"status"`
	User   struct {
		Email string `json:"email"`
	} `json:"user"`
	Responses map[string]struct {
		Value []string `json:"value"`
	} `json:"responses"`
}

// A File as the API lists it, with the hash of what was downloaded.
type File struct {
	UUID       string `json:"uuid"`
	Name       string `json:"name"`
	SHA256     string `json:"sha256"`
	Response   string `json:"responseUuid"`
	Downloaded string `json:"-"` // SHA-256 in hexadecimal, or why there is none
}

// A Comment as the API lists it.
type Comment struct {
	UUID     string `json:"uuid"`
	Body     string `json:"body"`
	Response string `json:"-"`
}

// A Signature as the API lists it.
type Signature struct {
	UUID   string `json:"uuid"`
	Signer struct {
		FirstName string `json:"firstName"`
	} `json:"signer"`
	Response string `json:"-"`
}

// A Happening identifies an event by its type and subject.
type Happening struct {
	Event, Response string
	Record          string // of file.uploaded and signature.completed: the file, the signature
}

// A Verdict is the result of the comparison.
type Verdict struct {
	Faults []string // empty: every promise was kept
	// How many records there are, for a report.
	Responses, Completed, Files, Comments, Signatures, Events int
	// Unknown is the number of requests without a conclusive response, and Happened the number of those that were carried out.
	Unknown, Happened int
	// Unlisted is the number of events that the feed doesn't show, and Undelivered the number of shown events that haven't
	// arrived. Both may resolve with time: the feed holds events back while an older transaction is open.
	Unlisted, Undelivered int
}

func (v *Verdict) fault(format string, args ...any) {
	v.Faults = append(v.Faults, fmt.Sprintf(format, args...))
}

// Compare checks the rules: everything acknowledged is stored, everything stored was requested, nothing is stored twice,
// every change has exactly its events, each event arrived with the bytes of the feed, and every file has its bytes. arrived
// may be nil without a receiver.
func Compare(l *ledger.Ledger, s *Stored, arrived map[string]inbox.Arrival) Verdict {
	v := Verdict{
		Responses: len(s.Responses), Files: len(s.Files), Comments: len(s.Comments), Signatures: len(s.Signatures), Events: len(s.Events),
	}
	v.Faults = l.Faults()
	want := make(map[string]*wanted)
	for _, e := range l.Entries() {
		want[e.Marker] = &wanted{Entry: e}
	}
	happened := make(map[Happening]int)
	completing := make(map[string]*wanted)
	for _, w := range want {
		if w.Kind == ledger.Complete {
			completing[w.Of] = w
		}
	}
	for i := range s.Responses {
		v.response(&s.Responses[i], want, completing, happened)
	}
	for i := range s.Files {
		v.file(&s.Files[i], want, happened)
	}
	for _, c := range s.Comments {
		v.found(ledger.Comment, c.Body, c.UUID, c.Response, want)
	}
	for _, g := range s.Signatures {
		v.found(ledger.Sign, g.Signer.FirstName, g.UUID, g.Response, want)
		happened[Happening{Event: "signature.completed", Response: g.Response, Record: g.UUID}]++
	}
	for marker, w := range want {
		v.entry(marker, w)
	}
	if s.Count != len(s.Responses) {
		v.fault("responseCount is %d, %d are listed", s.Count, len(s.Responses))
	}
	v.events(s.Events, happened, arrived)
	return v
}

// A wanted is an entry of the ledger with its stored records.
type wanted struct {
	ledger.Entry

	stored []string // UUIDs, or for Complete the response's
}

// found records a stored record, and checks it.
func (v *Verdict) found(kind ledger.Kind, marker, uuid, of string, want map[string]*wanted) *wanted {
	w := want[marker]
	if w == nil || w.Kind != kind || w.Of != of {
		v.fault("invented: %s %s is %q of %s, which nobody sent", kind, uuid, marker, of)
		return nil
	}
	w.stored = append(w.stored, uuid)
	return w
}

func (v *Verdict) response(r *Response, want, completing map[string]*wanted, happened map[Happening]int) {
	m := r.Responses["marker"].Value
	if len(r.Responses) != 1 || len(m) != 1 || r.User.Email != "ada@example.com" {
		v.fault("response %s is not as it was sent: %+v", r.UUID, *r)
		return
	}
	v.found(ledger.Create, m[0], r.UUID, "", want)
	happened[Happening{Event: "response.created", Response: r.UUID}]++
	switch w := completing[r.UUID]; {
	case r.Status == "completed" && w != nil:
		w.stored = append(w.stored, r.UUID)
		v.Completed++
		happened[Happening{Event: "response.status_changed", Response: r.UUID}]++
		happened[Happening{Event: "response.completed", Response: r.UUID}]++
	case r.Status != "pending":
		v.fault("invented: response %s has the status %q", r.UUID, r.Status)
	}
}

func (v *Verdict) file(f *File, want map[string]*wanted, happened map[Happening]int) {
	w := v.found(ledger.Upload, f.Name, f.UUID, f.Response, want)
	happened[Happening{Event: "file.uploaded", Response: f.Response, Record: f.UUID}]++
	if w != nil && (f.SHA256 != w.SHA256 || f.Downloaded != w.SHA256) {
		v.fault("wrong bytes: file %s was sent with the hash %s, the service says %s, the download has %s",
			f.UUID, w.SHA256, f.SHA256, f.Downloaded)
	}
}

// entry compares an entry with its stored records.
func (v *Verdict) entry(marker string, w *wanted) {
	uuid := w.UUID
	if w.Kind == ledger.Complete {
		uuid = w.Of
	}
	switch {
	case len(w.stored) > 1:
		v.fault("duplicated: %s %q is stored as %v", w.Kind, marker, w.stored)
	case w.Outcome == ledger.Done && len(w.stored) == 0:
		v.fault("lost: %s %q was answered %d as %s, and is not there", w.Kind, marker, w.Status, uuid)
	case w.Outcome == ledger.Done && w.stored[0] != uuid:
		v.fault("%s %q was answered as %s, and is stored as %s", w.Kind, marker, uuid, w.stored[0])
	case w.Outcome == ledger.Refused && len(w.stored) > 0:
		v.fault("half work: %s %q was refused with %d, and is stored as %s", w.Kind, marker, w.Status, w.stored[0])
	case w.Outcome == ledger.Unknown:
		v.Unknown++
		v.Happened += len(w.stored)
	}
}

// events compares the changes with the feed, and the feed with the deliveries.
func (v *Verdict) events(feed []json.RawMessage, happened map[Happening]int, arrived map[string]inbox.Arrival) {
	listed := make(map[string]bool, len(feed))
	for _, raw := range feed {
		id, h, err := read(raw)
		if err != nil || listed[id] {
			v.fault("the feed has an event that is none or is there twice: %.300s", raw)
			continue
		}
		listed[id] = true
		switch happened[h] {
		case 0:
			v.fault("invented: event %s reports %+v, which did not happen or was reported before", id, h)
		default:
			happened[h]--
		}
		if arrived == nil {
			continue
		}
		switch a, ok := arrived[id]; {
		case !ok || a.Times == 0:
			v.Undelivered++
			v.fault("undelivered: event %s, %+v", id, h)
		case a.Body != sha256.Sum256(raw):
			v.fault("wrong bytes: event %s arrived with other bytes than the feed shows", id)
		}
	}
	for h, n := range happened {
		if n > 0 {
			v.Unlisted += n
			v.fault("unlisted: %+v has no event", h)
		}
	}
	for id := range arrived {
		if !listed[id] {
			v.Unlisted++
			v.fault("invented: event %s arrived and is not in the feed", id)
		}
	}
}

func read(raw json.RawMessage) (id string, h Happening, err error) {
	type record struct {
		UUID string `json:"uuid"`
	}
	var e struct {
		ID    string `json:"id"`
		Event string `json:"event"`
		Data  struct {
			Response  record `json:"response"`
			File      record `json:"file"`
			Signature record `json:"signature"`
		} `json:"data"`
	}
	err = json.Unmarshal(raw, &e)
	return e.ID, Happening{Event: e.Event, Response: e.Data.Response.UUID, Record: e.Data.File.UUID + e.Data.Signature.UUID}, err
}

// Hash returns a hash in the form that files have.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
