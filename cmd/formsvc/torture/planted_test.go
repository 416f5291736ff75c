package torture_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A scene is what a correct service leaves: a completed response with a file, a comment and a signature, two requests with
// an unknown outcome, of which one was carried out, and a refused one.
type scene struct {
	ledger  ledger
	stored  stored
	arrived map[string]arrival
}

func newScene() *scene {
	s := &scene{ledger: ledger{entries: make(map[string]*entry)}, arrived: make(map[string]arrival)}
	s.entry(&entry{kind: create, marker: "a"}, 201, "ua")
	s.entry(&entry{kind: complete, marker: "a2", of: "ua"}, 200, "")
	s.entry(&entry{kind: upload, marker: "file", of: "ua", sha256: hash(nil)}, 201, "fa")
	s.entry(&entry{kind: comment, marker: "note", of: "ua"}, 201, "ca")
	s.entry(&entry{kind: sign, marker: "sign", of: "ua"}, 201, "ga")
	s.entry(&entry{kind: create, marker: "b"}, 503, "")
	s.entry(&entry{kind: create, marker: "c"}, 0, "")
	s.entry(&entry{kind: create, marker: "d"}, 409, "")
	s.response("ua", "completed", "a")
	s.response("ub", "pending", "b")
	s.stored.records = []record{
		{kind: upload, of: "ua", UUID: "fa", Name: "file", SHA256: hash(nil), downloaded: hash(nil)},
		{kind: comment, of: "ua", UUID: "ca", Body: "note"}, {kind: sign, of: "ua", UUID: "ga"},
	}
	s.stored.records[2].Signer.FirstName = "sign"
	s.event("1", "response.created", "ua", "")
	s.event("2", "response.created", "ub", "")
	s.event("3", "response.status_changed", "ua", "")
	s.event("4", "response.completed", "ua", "")
	s.event("5", "file.uploaded", "ua", "fa")
	s.event("6", "signature.completed", "ua", "ga")
	return s
}

func (s *scene) entry(e *entry, status int, uuid string) {
	s.ledger.intend(e)
	s.ledger.answer(e, status, uuid)
}

func (s *scene) response(uuid, status, marker string) {
	var r response
	text := fmt.Sprintf(`{"uuid":%q,"status":%q,"user":{"email":"ada@example.com"},"responses":{"marker":{"value":[%q]}}}`, uuid, status, marker)
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		panic(err)
	}
	s.stored.responses = append(s.stored.responses, r)
	s.stored.count++
}

func (s *scene) event(id, kind, response, file string) {
	raw := json.RawMessage(fmt.Sprintf(`{"id":%q,"event":%q,"data":{"response":{"uuid":%q},"file":{"uuid":%q}}}`, id, kind, response, file))
	s.stored.events = append(s.stored.events, raw)
	s.arrived[id] = arrival{hash(raw), 1}
}

// remove removes a record, and its event from the feed and from the receiver.
func (s *scene) remove(record, event int) {
	s.stored.records = slices.Delete(s.stored.records, record, record+1)
	s.stored.events = slices.Delete(s.stored.events, event, event+1)
	delete(s.arrived, fmt.Sprint(event+1))
}

// The checker finds nothing in a correct scene, and each kind of violation that is planted in it.
func TestCheckerFindsViolations(t *testing.T) {
	if v := compare(&newScene().ledger, &newScene().stored, newScene().arrived); len(v.faults) > 0 || v.unclear != 2 || v.happened != 1 {
		t.Errorf("%+v in a correct scene", v)
	}
	for want, plant := range map[string]func(*scene){
		`lost: create "a"`:             func(s *scene) { s.stored.responses = s.stored.responses[1:] },
		`lost: complete "a2"`:          func(s *scene) { s.stored.responses[0].Status = "pending" },
		`lost: upload "file"`:          func(s *scene) { s.remove(0, 4) },
		`lost: comment "note"`:         func(s *scene) { s.stored.records = slices.Delete(s.stored.records, 1, 2) },
		`lost: sign "sign"`:            func(s *scene) { s.remove(2, 5) },
		`lost: create "d"`:             func(s *scene) { s.entry(s.ledger.entries["d"], 201, "ud"); s.entry(s.ledger.entries["d"], 503, "") },
		`invented: create ux`:          func(s *scene) { s.response("ux", "pending", "x"); s.event("9", "response.created", "ux", "") },
		`invented: response ub has`:    func(s *scene) { s.stored.responses[1].Status = "completed" },
		`invented: comment cx`:         func(s *scene) { s.stored.records[1].UUID = "cx"; s.stored.records[1].Body = "x" },
		`invented: event 9`:            func(s *scene) { s.event("9", "response.completed", "ub", "") },
		`invented: event 9 arrived`:    func(s *scene) { s.arrived["9"] = arrival{"", 1} },
		`duplicated: create "a"`:       func(s *scene) { s.response("ua2", "pending", "a"); s.event("9", "response.created", "ua2", "") },
		`half work: create "d"`:        func(s *scene) { s.response("ud", "pending", "d"); s.event("9", "response.created", "ud", "") },
		`create "a" was answered twic`: func(s *scene) { s.entry(s.ledger.entries["a"], 201, "ua2") },
		`create "a" was answered as u`: func(s *scene) { s.stored.responses[0].UUID = "uz" },
		`wrong bytes: file fa`:         func(s *scene) { s.stored.records[0].downloaded = "status 404 (<nil>)" },
		`wrong bytes: event 2`:         func(s *scene) { s.arrived["2"] = arrival{"", 1} },
		`undelivered: event 3`:         func(s *scene) { delete(s.arrived, "3") },
		`undelivered: event 4`:         func(s *scene) { s.arrived["4"] = arrival{s.arrived["4"].body, 0} },
		`unlisted: {event:response.cr`: func(s *scene) { s.stored.events = s.stored.events[1:] },
		`the feed has an event that i`: func(s *scene) { s.stored.events = append(s.stored.events, s.stored.events[0]) },
		`responseCount is 3`:           func(s *scene) { s.stored.count++ },
		`response ua is not as it was`: func(s *scene) { s.stored.responses[0].User.Email = "" },
		`"b" was answered with 400`:    func(s *scene) { s.ledger.fault(`"b" was answered with 400`) },
	} {
		s := newScene()
		plant(s)
		v := compare(&s.ledger, &s.stored, s.arrived)
		if !slices.ContainsFunc(v.faults, func(f string) bool { return strings.HasPrefix(f, want) }) {
			t.Errorf("want %q, found %q", want, v.faults)
		}
	}
}
