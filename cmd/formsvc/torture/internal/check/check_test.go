package check_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/check"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/inbox"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/ledger"
)

// A scene is the record of a correct service: a completed response, a file, a comment, and two requests without a response,
// of which one was carried out.
type scene struct {
	t       *testing.T
	path    string
	ledger  *ledger.Ledger
	stored  check.Stored
	arrived map[string]inbox.Arrival
}

var fileHash = check.Hash([]byte("bytes"))

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, path: filepath.Join(t.TempDir(), "ledger"), arrived: make(map[string]inbox.Arrival)}
	var err error
	if s.ledger, err = ledger.New(s.path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.ledger.Close() })
	s.entry(ledger.Entry{Kind: ledger.Create, Marker: "a", Key: "a"}, 201, "ua")
	s.entry(ledger.Entry{Kind: ledger.Complete, Marker: "a-done", Of: "ua"}, 200, "")
	s.entry(ledger.Entry{Kind: ledger.Upload, Marker: "a-file", Of: "ua", SHA256: fileHash}, 201, "fa")
	s.entry(ledger.Entry{Kind: ledger.Comment, Marker: "a-note", Of: "ua"}, 201, "ca")
	s.entry(ledger.Entry{Kind: ledger.Sign, Marker: "a-sign", Of: "ua"}, 201, "ga")
	s.entry(ledger.Entry{Kind: ledger.Create, Marker: "b"}, 503, "")
	s.entry(ledger.Entry{Kind: ledger.Create, Marker: "c"}, 0, "")
	s.entry(ledger.Entry{Kind: ledger.Create, Marker: "d"}, 409, "")
	s.response("ua", "completed", "a")
	s.response("ub", "pending", "b")
	s.stored.Files = []check.File{{UUID: "fa", Name: "a-file", SHA256: fileHash, Response: "ua", Downloaded: fileHash}}
	s.stored.Comments = []check.Comment{{UUID: "ca", Body: "a-note", Response: "ua"}}
	s.stored.Signatures = make([]check.Signature, 1)
	s.stored.Signatures[0].UUID, s.stored.Signatures[0].Response, s.stored.Signatures[0].Signer.FirstName = "ga", "ua", "a-sign"
	s.event("1", "response.created", "ua", "")
	s.event("2", "response.created", "ub", "")
	s.event("3", "response.status_changed", "ua", "")
	s.event("4", "response.completed", "ua", "")
	s.event("5", "file.uploaded", "ua", "fa")
	s.event("6", "signature.completed", "ua", "ga")
	return s
}

func (s *scene) entry(e ledger.Entry, status int, uuid string) {
	s.t.Helper()
	if err := s.ledger.Intend(e); err != nil {
		s.t.Fatal(err)
	}
	s.answer(e.Marker, status, uuid)
}

func (s *scene) answer(marker string, status int, uuid string) {
	s.t.Helper()
	if err := s.ledger.Answer(marker, status, uuid); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) response(uuid, status, marker string) {
	s.t.Helper()
	var r check.Response
	text := fmt.Sprintf(`{"uuid":%q,"status":%q,"user":{"email":"ada@example.com"},"responses":{"marker":{"value":[%q]}}}`, uuid, status, marker)
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		s.t.Fatal(err)
	}
	s.stored.Responses = append(s.stored.Responses, r)
	s.stored.Count++
}

func (s *scene) event(id, kind, response, file string) {
	raw := json.RawMessage(fmt.Sprintf(`{"id":%q,"event":%q,"data":{"response":{"uuid":%q},"file":{"uuid":%q}}}`, id, kind, response, file))
	s.stored.Events = append(s.stored.Events, raw)
	s.arrived[id] = inbox.Arrival{Body: sha256.Sum256(raw), Times: 1}
}

// Compare finds no faults in a correct scene, even if the ledger is read from its file.
func TestCompareFindsNothing(t *testing.T) {
	s := newScene(t)
	again, err := ledger.Read(s.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []*ledger.Ledger{s.ledger, again} {
		v := check.Compare(l, &s.stored, s.arrived)
		if len(v.Faults) > 0 {
			t.Errorf("%q", v.Faults)
		}
		if v.Responses != 2 || v.Completed != 1 || v.Files != 1 || v.Comments != 1 || v.Events != 6 || v.Unknown != 2 || v.Happened != 1 {
			t.Errorf("%+v", v)
		}
	}
}

// Compare finds each kind of fault, and reports only that fault.
func TestCompareFindsEachFault(t *testing.T) {
	for want, plant := range map[string]func(*scene){
		`lost: create "a"`:                   func(s *scene) { s.stored.Responses[0].Responses["marker"].Value[0] = "b2"; s.intend("b2") },
		`lost: complete "a-done"`:            func(s *scene) { s.stored.Responses[0].Status = "pending" },
		`lost: upload "a-file"`:              func(s *scene) { s.stored.Files = nil; s.dropEvent(4) },
		`lost: comment "a-note"`:             func(s *scene) { s.stored.Comments = nil },
		`lost: sign "a-sign"`:                func(s *scene) { s.stored.Signatures = nil; s.dropEvent(5) },
		`invented: create ux`:                func(s *scene) { s.response("ux", "pending", "x"); s.event("9", "response.created", "ux", "") },
		`invented: response ub has the`:      func(s *scene) { s.stored.Responses[1].Status = "completed" },
		`invented: comment cx`:               func(s *scene) { s.stored.Comments = append(s.stored.Comments, check.Comment{UUID: "cx", Body: "x"}) },
		`invented: event 9`:                  func(s *scene) { s.event("9", "response.completed", "ub", "") },
		`invented: event 9 arrived`:          func(s *scene) { s.event("9", "test", "ub", ""); s.stored.Events = s.stored.Events[:6] },
		`duplicated: create "a"`:             func(s *scene) { s.response("ua2", "pending", "a"); s.event("9", "response.created", "ua2", "") },
		`half work: create "d"`:              func(s *scene) { s.response("ud", "pending", "d"); s.event("9", "response.created", "ud", "") },
		`create "a" was answered twice`:      func(s *scene) { s.answer("a", 201, "ua2") },
		`wrong bytes: file fa`:               func(s *scene) { s.stored.Files[0].Downloaded = "status 404 (<nil>)" },
		`wrong bytes: event 2`:               func(s *scene) { s.arrived["2"] = inbox.Arrival{Times: 1} },
		`undelivered: event 3`:               func(s *scene) { delete(s.arrived, "3") },
		`undelivered: event 4`:               func(s *scene) { s.arrived["4"] = inbox.Arrival{Body: s.arrived["4"].Body} },
		`unlisted: {Event:response.created`:  func(s *scene) { s.dropEvent(0) },
		`the feed has an event that is none`: func(s *scene) { s.stored.Events = append(s.stored.Events, s.stored.Events[0]) },
		`responseCount is 3`:                 func(s *scene) { s.stored.Count++ },
		`response ua is not as it was sent`:  func(s *scene) { s.stored.Responses[0].User.Email = ""; s.ledger.Fault("stop") },
		`"b" was refused, it said`:           func(s *scene) { s.ledger.Fault(`"b" was refused, it said`) },
	} {
		t.Run(want, func(t *testing.T) {
			s := newScene(t)
			plant(s)
			v := check.Compare(s.ledger, &s.stored, s.arrived)
			if !slices.ContainsFunc(v.Faults, func(f string) bool { return strings.HasPrefix(f, want) }) {
				t.Errorf("found %q", v.Faults)
			}
		})
	}
}

func (s *scene) intend(marker string) {
	s.t.Helper()
	if err := s.ledger.Intend(ledger.Entry{Kind: ledger.Create, Marker: marker}); err != nil {
		s.t.Fatal(err)
	}
}

// dropEvent removes an event from the feed and from the receiver.
func (s *scene) dropEvent(i int) {
	var e struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(s.stored.Events[i], &e); err != nil {
		s.t.Fatal(err)
	}
	delete(s.arrived, e.ID)
	s.stored.Events = slices.Delete(s.stored.Events, i, i+1)
}

// The outcome of an entry follows from the responses to all its requests.
func TestOutcomes(t *testing.T) {
	s := newScene(t)
	again := func(marker string) {
		if err := s.ledger.Again(marker); err != nil {
			t.Fatal(err)
		}
	}
	s.entry(ledger.Entry{Kind: ledger.Create, Marker: "e", Key: "e"}, 0, "") // may have happened
	again("e")
	s.answer("e", 409, "") // of this request only
	s.entry(ledger.Entry{Kind: ledger.Create, Marker: "f", Key: "f"}, 201, "uf")
	again("f")
	s.answer("f", 503, "")
	for _, e := range s.ledger.Entries() {
		want, ok := map[string]ledger.Outcome{"e": ledger.Unknown, "f": ledger.Done, "d": ledger.Refused, "b": ledger.Unknown, "c": ledger.Unknown}[e.Marker]
		if ok && e.Outcome != want {
			t.Errorf("%s: %q, want %q", e.Marker, e.Outcome, want)
		}
	}
	if err := s.ledger.Intend(ledger.Entry{Kind: ledger.Create, Marker: "e"}); err == nil {
		t.Error("a marker was used twice")
	}
}
