package formsvc_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// parsed takes the new events and parses their payloads as a receiver does.
func (w *world) parsed() []webhook.Event {
	w.tb.Helper()
	var list []webhook.Event
	for _, e := range w.store.take() {
		got := must(webhook.ParseEvent(e.Payload))
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
		`"updatedAt":"2026-11-21T08:30:00.123Z","completedAt":null,"metadata":{}},"actor":{"type":"system"}}}`
	goldenUpdated = `{"id":"01a1fd3a-ee1b-7000-8000-000000000006","event":"response.updated",` +
		`"timestamp":"2026-11-21T08:31:00.123Z",` + goldenCampaign + goldenFinished +
		`,"changes":["/user/firstName","/responses/b~1c"],` + goldenActor
	goldenStatusChanged = `{"id":"01a1fd3a-ee1b-7000-8000-000000000007","event":"response.status_changed",` +
		`"timestamp":"2026-11-21T08:31:00.123Z",` + goldenCampaign + goldenFinished +
		`,"previousStatus":"pending",` + goldenActor
	goldenCompleted = `{"id":"01a1fd3a-ee1b-7000-8000-000000000008","event":"response.completed",` +
		`"timestamp":"2026-11-21T08:31:00.123Z",` + goldenCampaign + goldenFinished +
		`,"previousStatus":"pending",` + goldenActor
	goldenActor    = `"actor":{"type":"person","id":"7","name":"Zoë \"Z\""}}}`
	goldenFinished = `"response":{"uuid":"01a1fd3a-03bb-7000-8000-000000000004","reference":"REF-00001","status":"completed",` +
		`"user":{"email":"ada@example.com","firstName":"Augusta","lastName":"Lovelace"},` +
		`"responses":{"a":{"value":["1","\u0001"]},"b/c":{"value":["🌍"]}},` +
		`"createdAt":"2026-11-21T08:30:00.123Z","campaignUuid":"01a1fd3a-03bb-7000-8000-000000000003",` +
		`"updatedAt":"2026-11-21T08:31:00.123Z","completedAt":"2026-11-21T08:31:00.123Z","metadata":{}}`
)

func TestPayloadBytes(t *testing.T) {
	w := newWorld(t)
	c := must(w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "Grant \"A/B\" <é>\n"}))
	r := w.submitted(&c, answer("a", "1", "\x01"), answer("b/c"))
	w.clock.add(time.Minute)
	w.svc = w.svc.As(formsvc.Actor{Type: webhook.ActorPerson, ID: "7", Name: `Zoë "Z"`})
	w.updated(&r, formsvc.ResponsePatch{
		Status: new("completed"), FirstName: new("Augusta"),
		Answers: []formsvc.AnswerPatch{{Answer: answer("b/c", "🌍")}},
	})
	want := []string{goldenCreated, goldenUpdated, goldenStatusChanged, goldenCompleted}
	events := w.store.take()
	if len(events) != len(want) {
		t.Fatalf("the events are %q", eventTypes(events))
	}
	for i, e := range events {
		equal(t, string(e.Payload), want[i], "%s is\n%s", e.Type)
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
		payload := w.events()[len(w.events())-1].Payload
		e := w.parsed()[0]
		whole := over == 0
		if e.Data.Truncated == whole || (len(e.Data.Response.Responses) == 1) != whole || (len(payload) == formsvc.MaxPayload) != whole ||
			bytes.HasSuffix(payload, []byte(`},"truncated":true}}`)) == whole {
			t.Errorf("%d bytes, truncated %t, ends in %s", len(payload), e.Data.Truncated, payload[len(payload)-40:])
		}
	}
}

// A truncated payload of every type keeps its other fields, except a list of changes that is too long.
func TestTruncatedPayloadKeepsOtherFields(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	r := w.submitted(&c)
	w.store.take()
	large := set("a", strings.Repeat("x", formsvc.MaxPayload))
	w.updated(&r, formsvc.ResponsePatch{Status: new("completed"), Answers: []formsvc.AnswerPatch{large}})
	var many []formsvc.AnswerPatch
	for i := range 999 {
		// Six bytes in JSON for each of these characters.
		many = append(many, set(fmt.Sprintf("%04d%s", i, strings.Repeat("\x01", 196))))
	}
	w.updated(&r, formsvc.ResponsePatch{Answers: many})
	events := w.parsed()
	if len(events) != 4 {
		t.Fatalf("%d events", len(events))
	}
	for i, e := range events {
		d, moved := e.Data, i == 1 || i == 2
		if !d.Truncated || d.Response.Responses != nil || d.Response.User.Email != "ada@example.com" ||
			slices.Equal(d.Changes, []string{"/responses/a"}) != (i == 0) || (d.PreviousStatus == "pending") != moved {
			t.Errorf("event %d, %s: %+v", i, e.Type, d)
		}
	}
	if last := w.events()[4].Payload; len(last) > formsvc.MaxPayload || events[3].Data.Changes != nil {
		t.Errorf("%d bytes, %d changes", len(last), len(events[3].Data.Changes))
	}
}
