package formsvc_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// parsed takes the written events and parses their payloads as a receiver does.
func (w *world) parsed() []webhook.Event {
	w.tb.Helper()
	var list []webhook.Event
	for _, e := range w.store.take() {
		got, err := webhook.ParseEvent(e.Payload)
		if err != nil {
			w.tb.Fatal(err)
		}
		if got.ID != string(e.ID) || got.Type != e.Type || !got.Timestamp.Equal(e.CreatedAt) || got.Test {
			w.tb.Errorf("the payload of %s %s says %s %s", e.Type, e.ID, got.Type, got.ID)
		}
		if got.Data.Response.UUID != string(e.ResponseID) || got.Data.Campaign.UUID != string(e.CampaignID) {
			w.tb.Errorf("the payload of %s is about something else", e.Type)
		}
		list = append(list, got)
	}
	return list
}

// The bytes that a receiver gets: fields, order and format.
const (
	goldenCampaign = `"data":{"campaign":{"uuid":"01a1fd3a-03bb-7000-8000-000000000003","title":"Grant \"A/B\" <é>\n"},`
	goldenCreated  = `{"id":"01a1fd3a-03bb-7000-8000-000000000005","event":"response.created",` +
		`"timestamp":"2026-11-21T08:30:00.123Z",` + goldenCampaign +
		`"response":{"uuid":"01a1fd3a-03bb-7000-8000-000000000004","reference":"REF-00001","status":"pending",` +
		`"user":{"email":"ada@example.com","firstName":"Ada","lastName":"Lovelace"},` +
		`"responses":{"a":{"value":["1","\u0001"]},"b/c":{"value":[]}},` +
		`"createdAt":"2026-11-21T08:30:00.123Z","campaignUuid":"01a1fd3a-03bb-7000-8000-000000000003",` +
		`"updatedAt":"2026-11-21T08:30:00.123Z","completedAt":null}}}`
	goldenUpdated = `{"id":"01a1fd3a-ee1b-7000-8000-000000000006","event":"response.updated",` +
		`"timestamp":"2026-11-21T08:31:00.123Z",` + goldenCampaign + goldenFinished +
		`,"changes":["/user/firstName","/responses/b~1c"]}}`
	goldenStatusChanged = `{"id":"01a1fd3a-ee1b-7000-8000-000000000007","event":"response.status_changed",` +
		`"timestamp":"2026-11-21T08:31:00.123Z",` + goldenCampaign + goldenFinished +
		`,"previousStatus":"pending"}}`
	goldenCompleted = `{"id":"01a1fd3a-ee1b-7000-8000-000000000008","event":"response.completed",` +
		`"timestamp":"2026-11-21T08:31:00.123Z",` + goldenCampaign + goldenFinished +
		`,"previousStatus":"pending"}}`
	goldenFinished = `"response":{"uuid":"01a1fd3a-03bb-7000-8000-000000000004","reference":"REF-00001","status":"completed",` +
		`"user":{"email":"ada@example.com","firstName":"Augusta","lastName":"Lovelace"},` +
		`"responses":{"a":{"value":["1","\u0001"]},"b/c":{"value":["🌍"]}},` +
		`"createdAt":"2026-11-21T08:30:00.123Z","campaignUuid":"01a1fd3a-03bb-7000-8000-000000000003",` +
		`"updatedAt":"2026-11-21T08:31:00.123Z","completedAt":"2026-11-21T08:31:00.123Z"}`
)

func goldenUnits(w *world) formsvc.Response {
	w.tb.Helper()
	c, err := w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "Grant \"A/B\" <é>\n"})
	if err != nil {
		w.tb.Fatal(err)
	}
	r := w.submitted(&c, answer("a", "1", "\x01"), answer("b/c"))
	w.clock.add(time.Minute)
	return w.updated(&r, formsvc.ResponsePatch{
		Status: new("completed"), FirstName: new("Augusta"),
		Answers: []formsvc.AnswerPatch{{Answer: answer("b/c", "🌍")}},
	})
}

func TestPayloadBytes(t *testing.T) {
	w := newWorld(t)
	goldenUnits(w)
	want := []string{goldenCreated, goldenUpdated, goldenStatusChanged, goldenCompleted}
	events := w.store.take()
	if len(events) != len(want) {
		t.Fatalf("the events are %q", eventTypes(events))
	}
	for i, e := range events {
		if string(e.Payload) != want[i] {
			t.Errorf("%s is\n%s\nwant\n%s", e.Type, e.Payload, want[i])
		}
	}
}

func TestPayloadsParseInReceivers(t *testing.T) {
	w := newWorld(t)
	r := goldenUnits(w)
	at := start().Add(time.Minute)
	data := webhook.Data{
		Campaign: webhook.Campaign{UUID: string(r.CampaignID), Title: "Grant \"A/B\" <é>\n"},
		Response: webhook.Response{
			UUID: string(r.ID), Reference: "REF-00001", CampaignUUID: string(r.CampaignID), Status: "completed",
			User: webhook.User{Email: "ada@example.com", FirstName: "Augusta", LastName: "Lovelace"},
			Responses: map[string]webhook.Answer{
				"a": {Value: []string{"1", "\x01"}}, "b/c": {Value: []string{"🌍"}},
			},
			CreatedAt: start(), UpdatedAt: at, CompletedAt: at,
		},
	}
	created, updated, moved := data, data, data
	created.Response.Status, created.Response.User.FirstName = "pending", "Ada"
	created.Response.UpdatedAt, created.Response.CompletedAt = start(), time.Time{}
	created.Response.Responses = map[string]webhook.Answer{"a": {Value: []string{"1", "\x01"}}, "b/c": {Value: []string{}}}
	updated.Changes = []string{"/user/firstName", "/responses/b~1c"}
	moved.PreviousStatus = "pending"
	want := []struct {
		t    formsvc.EventType
		data webhook.Data
	}{
		{webhook.ResponseCreated, created},
		{webhook.ResponseUpdated, updated},
		{webhook.ResponseStatusChanged, moved},
		{webhook.ResponseCompleted, moved},
	}
	events := w.parsed()
	if len(events) != len(want) {
		t.Fatalf("%d events", len(events))
	}
	for i, e := range events {
		if e.Type != want[i].t || !reflect.DeepEqual(e.Data, want[i].data) {
			t.Errorf("%s says %+v\nwant %s %+v", e.Type, e.Data, want[i].t, want[i].data)
		}
	}
}

// members returns the names in an object of a payload, sorted.
func members(t *testing.T, payload []byte, path ...string) []string {
	t.Helper()
	for _, name := range path {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(payload, &object); err != nil {
			t.Fatal(err)
		}
		payload = object[name]
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(payload, &object); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Each type has exactly the fields of the contract.
func TestPayloadFieldsByType(t *testing.T) {
	w := newWorld(t)
	goldenUnits(w)
	response := []string{
		"campaignUuid", "completedAt", "createdAt", "reference", "responses", "status", "updatedAt", "user", "uuid",
	}
	extra := map[formsvc.EventType]string{
		webhook.ResponseUpdated: "changes", webhook.ResponseStatusChanged: "previousStatus", webhook.ResponseCompleted: "previousStatus",
	}
	for _, e := range w.store.take() {
		if got := members(t, e.Payload); !slices.Equal(got, []string{"data", "event", "id", "timestamp"}) {
			t.Errorf("%s has %q", e.Type, got)
		}
		want := []string{"campaign", "response"}
		if extra[e.Type] != "" {
			want = append(want, extra[e.Type])
			slices.Sort(want)
		}
		if got := members(t, e.Payload, "data"); !slices.Equal(got, want) {
			t.Errorf("%s has %q in data", e.Type, got)
		}
		if got := members(t, e.Payload, "data", "response"); !slices.Equal(got, response) {
			t.Errorf("%s has %q in data.response", e.Type, got)
		}
	}
}

func TestEventRecords(t *testing.T) {
	w := newWorld(t)
	r := goldenUnits(w)
	last := formsvc.ID("")
	for _, e := range w.store.take() {
		if e.AccountID != r.AccountID || e.CampaignID != r.CampaignID || e.ResponseID != r.ID {
			t.Errorf("%s is of %+v", e.Type, e)
		}
		if e.ID <= last {
			t.Errorf("%s does not sort after the one before", e.Type)
		}
		last = e.ID
	}
}

// A payload at the limit is complete; one byte more and it is truncated.
func TestPayloadIsTruncatedAboveTheLimit(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	w.submitted(&c, answer("a", ""))
	room := formsvc.MaxPayload - len(w.store.take()[0].Payload)
	for _, over := range []int{0, 1} {
		value := strings.Repeat("é", room/2) + strings.Repeat("x", room%2+over)
		r := w.submitted(&c, answer("a", value))
		if got, _ := r.Answers.Get("a"); len(got) != 1 || got[0] != value {
			t.Error("the response itself is cut")
		}
		payload := w.store.written[0].Payload
		e := w.parsed()[0]
		if over == 0 {
			if len(payload) != formsvc.MaxPayload || e.Data.Truncated || e.Data.Response.Responses["a"].Value[0] != value {
				t.Errorf("%d bytes, truncated %t", len(payload), e.Data.Truncated)
			}
			continue
		}
		if !e.Data.Truncated || e.Data.Response.Responses != nil || len(payload) > 2_000 {
			t.Errorf("%d bytes, truncated %t", len(payload), e.Data.Truncated)
		}
		if got := members(t, payload, "data", "response"); slices.Contains(got, "responses") || len(got) != 8 {
			t.Errorf("the response has %q", got)
		}
		if !bytes.HasSuffix(payload, []byte(`},"truncated":true}}`)) {
			t.Errorf("the payload ends in %s", payload[len(payload)-40:])
		}
	}
}

// A truncated payload of every type keeps its other fields.
func TestTruncatedPayloadKeepsOtherFields(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	r := w.submitted(&c)
	w.store.take()
	w.updated(&r, formsvc.ResponsePatch{Status: new("completed"), Answers: []formsvc.AnswerPatch{
		{Answer: answer("a", strings.Repeat("x", formsvc.MaxPayload))},
	}})
	events := w.parsed()
	if len(events) != 3 {
		t.Fatalf("%d events", len(events))
	}
	for _, e := range events {
		if !e.Data.Truncated || e.Data.Response.Responses != nil || e.Data.Response.User.Email != "ada@example.com" {
			t.Errorf("%s: %+v", e.Type, e.Data)
		}
	}
	if !slices.Equal(events[0].Data.Changes, []string{"/responses/a"}) {
		t.Errorf("the changes are %q", events[0].Data.Changes)
	}
	if events[1].Data.PreviousStatus != "pending" || events[2].Data.PreviousStatus != "pending" {
		t.Error("the previous status is gone")
	}
}

// Even if the list of changes is too long, the event is sent.
func TestPayloadWithTooManyChanges(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	r := w.submitted(&c)
	w.store.take()
	var patch formsvc.ResponsePatch
	for i := range 1_000 {
		// Six bytes in JSON for each of these characters.
		name := fmt.Sprintf("%04d%s", i, strings.Repeat("\x01", 196))
		patch.Answers = append(patch.Answers, formsvc.AnswerPatch{Answer: answer(name)})
	}
	w.updated(&r, patch)
	payload := w.store.written[0].Payload
	e := w.parsed()[0]
	if len(payload) > formsvc.MaxPayload || e.Type != webhook.ResponseUpdated || !e.Data.Truncated || e.Data.Changes != nil {
		t.Errorf("%d bytes, truncated %t, %d changes", len(payload), e.Data.Truncated, len(e.Data.Changes))
	}
}
