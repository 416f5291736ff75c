package torture_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// stored is what the service has of a campaign.
type stored struct {
	count     int // what the campaign says about its number of responses
	responses []response
	records   []record          // files, comments and signatures of the responses
	events    []json.RawMessage // of the feed, each with the bytes that are delivered
}

// A response as the API lists it.
type response struct {
	UUID   string `json:"uuid"`
	Status string `json:"status"`
	User   struct {
		Email string `json:"email"`
	} `json:"user"`
	Responses map[string]struct {
		Value []string `json:"value"`
	} `json:"responses"`
}

// A record is something about a response.
type record struct {
	kind kind
	of   string

	UUID   string `json:"uuid"`
	Name   string `json:"name"`   // of a file: its marker
	SHA256 string `json:"sha256"` // of a file, as the service says
	Body   string `json:"body"`   // of a comment: its marker
	Signer struct {
		FirstName string `json:"firstName"` // its marker
	} `json:"signer"`
	downloaded string // the hash of the downloaded file, or why there is none
}

func (r *record) marker() string {
	return map[kind]string{upload: r.Name, comment: r.Body, sign: r.Signer.FirstName}[r.kind]
}

// readStored reads everything about a campaign from a node: lists, the feed, and the files, comments and signatures of all
// responses that the ledger has an operation for. It downloads every file.
func readStored(ctx context.Context, c *client, node, campaign string, l *ledger) (*stored, error) {
	about, err := c.api(node).Campaigns.Get(ctx, path.Base(campaign))
	if err != nil {
		return nil, err
	}
	s := stored{count: int(about.ResponseCount)}
	if s.responses, err = list[response](ctx, c, node+campaign+"/responses"); err != nil {
		return nil, err
	}
	if s.events, err = list[json.RawMessage](ctx, c, node+"/v1/events"); err != nil {
		return nil, err
	}
	there := make(map[string]bool) // otherwise the comparison reports a response as lost
	for i := range s.responses {
		there[s.responses[i].UUID] = true
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, e := range l.entries {
		what := map[kind]string{upload: "/files", comment: "/comments", sign: "/signatures"}[e.kind]
		if what == "" || !there[e.of] {
			continue
		}
		group.Go(func() error {
			records, err := list[record](ctx, c, node+campaign+"/responses/"+e.of+what)
			for i := range records {
				records[i].kind, records[i].of = e.kind, e.of
				if e.kind == upload {
					a, err := c.do(ctx, http.MethodGet, node+"/v1/files/"+records[i].UUID, nil, nil)
					if records[i].downloaded = hash(a.body); err != nil || a.status != http.StatusOK {
						records[i].downloaded = fmt.Sprintf("status %d (%v)", a.status, err)
					}
				}
			}
			mu.Lock()
			defer mu.Unlock()
			s.records = append(s.records, records...)
			return err
		})
	}
	return &s, group.Wait()
}

// A happening identifies an event by its type and subject.
type happening struct {
	event, response string
	record          string // of file.uploaded and signature.completed: the file, the signature
}

// A verdict is the result of the comparison.
type verdict struct {
	faults []string // empty: every promise was kept
	// pending is the number of events that the feed doesn't show or that haven't arrived. That may resolve with time: the
	// feed holds events back while an older transaction is open.
	pending int

	want   map[string]*entry   // by marker
	stored map[string][]string // UUIDs of the records by marker; of complete, the response's
	events map[happening]int   // how many the changes have; less those in the feed
}

func (v *verdict) fault(format string, args ...any) {
	v.faults = append(v.faults, fmt.Sprintf(format, args...))
}

// compare checks the rules: everything acknowledged is stored, everything stored was requested, nothing is stored twice,
// every change has exactly its events, each event arrived with the bytes of the feed, and every file has its bytes.
func compare(l *ledger, s *stored, arrived map[string]arrival) verdict {
	v := verdict{faults: slices.Clone(l.wrong), want: l.entries, stored: make(map[string][]string), events: make(map[happening]int)}
	completions := make(map[string]*entry) // by response
	for _, e := range l.entries {
		if e.kind == complete {
			completions[e.of] = e
		}
	}
	for i := range s.responses {
		v.response(&s.responses[i], completions)
	}
	for i := range s.records {
		v.record(&s.records[i])
	}
	for _, e := range l.entries {
		v.entry(e, v.stored[e.marker])
	}
	if s.count != len(s.responses) {
		v.fault("responseCount is %d, %d are listed", s.count, len(s.responses))
	}
	v.feed(s.events, arrived)
	return v
}

// found notes a stored record, and checks that a client asked for it.
func (v *verdict) found(kind kind, marker, uuid, of string) *entry {
	e := v.want[marker]
	if e == nil || e.kind != kind || e.of != of {
		v.fault("invented: %s %s is %q of %s, which nobody sent", kind, uuid, marker, of)
		return nil
	}
	v.stored[marker] = append(v.stored[marker], uuid)
	return e
}

func (v *verdict) response(r *response, completions map[string]*entry) {
	m := r.Responses["marker"].Value
	if len(r.Responses) != 1 || len(m) != 1 || r.User.Email != "ada@example.com" {
		v.fault("response %s is not as it was sent: %+v", r.UUID, *r)
		return
	}
	v.found(create, m[0], r.UUID, "")
	v.events[happening{"response.created", r.UUID, ""}]++
	switch e := completions[r.UUID]; {
	case r.Status == "completed" && e != nil:
		v.stored[e.marker] = append(v.stored[e.marker], r.UUID)
		v.events[happening{"response.status_changed", r.UUID, ""}]++
		v.events[happening{"response.completed", r.UUID, ""}]++
	case r.Status != "pending":
		v.fault("invented: response %s has the status %q", r.UUID, r.Status)
	}
}

func (v *verdict) record(r *record) {
	e := v.found(r.kind, r.marker(), r.UUID, r.of)
	switch r.kind {
	case upload:
		v.events[happening{"file.uploaded", r.of, r.UUID}]++
		if e != nil && (r.SHA256 != e.sha256 || r.downloaded != e.sha256) {
			v.fault("wrong bytes: file %s was sent with the hash %s, the service says %s, the download has %s",
				r.UUID, e.sha256, r.SHA256, r.downloaded)
		}
	case sign:
		v.events[happening{"signature.completed", r.of, r.UUID}]++
	}
}

// entry compares an entry with its stored records.
func (v *verdict) entry(w *entry, stored []string) {
	uuid := w.uuid
	if w.kind == complete {
		uuid = w.of
	}
	switch {
	case len(stored) > 1:
		v.fault("duplicated: %s %q is stored as %v", w.kind, w.marker, stored)
	case w.outcome == done && len(stored) == 0:
		v.fault("lost: %s %q was answered %d as %s, and is not there", w.kind, w.marker, w.status, uuid)
	case w.outcome == done && stored[0] != uuid:
		v.fault("%s %q was answered as %s, and is stored as %s", w.kind, w.marker, uuid, stored[0])
	case w.outcome == refused && len(stored) > 0:
		v.fault("half work: %s %q was refused with %d, and is stored as %s", w.kind, w.marker, w.status, stored[0])
	}
}

// feed compares the changes with the feed, and the feed with the deliveries.
func (v *verdict) feed(feed []json.RawMessage, arrived map[string]arrival) {
	listed := make(map[string]bool, len(feed))
	for _, raw := range feed {
		id, h, err := readEvent(raw)
		if err != nil || listed[id] {
			v.fault("the feed has an event that is none or is there twice: %.300s", raw)
			continue
		}
		listed[id] = true
		if v.events[h]--; v.events[h] < 0 {
			v.fault("invented: event %s reports %+v, which did not happen or was reported before", id, h)
		}
		switch a := arrived[id]; {
		case a.times == 0:
			v.pending++
			v.fault("undelivered: event %s, %+v", id, h)
		case a.body != hash(raw):
			v.fault("wrong bytes: event %s arrived with other bytes than the feed shows", id)
		}
	}
	for h, n := range v.events {
		if n > 0 {
			v.pending += n
			v.fault("unlisted: %+v has no event", h)
		}
	}
	for id := range arrived {
		if !listed[id] {
			v.pending++
			v.fault("invented: event %s arrived and is not in the feed", id)
		}
	}
}

func readEvent(raw json.RawMessage) (id string, h happening, err error) {
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
	return e.ID, happening{e.Event, e.Data.Response.UUID, e.Data.File.UUID + e.Data.Signature.UUID}, err
}
