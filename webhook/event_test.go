package webhook_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

// payload returns the content of a file in testdata.
func payload(tb testing.TB, name string) []byte {
	tb.Helper()
	return must(os.ReadFile(filepath.Join("testdata", name+".json")))
}

// parse returns the event of a file in testdata.
func parse(t *testing.T, name string) webhook.Event {
	t.Helper()
	return must(webhook.ParseEvent(payload(t, name)))
}

// The payload of the service's documentation has exactly the listed fields.
func TestParseDocumentedPayload(t *testing.T) {
	at := time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC)
	want := webhook.Event{
		Type:      webhook.ResponseCreated,
		Timestamp: at,
		Data: webhook.Data{
			Campaign: webhook.Campaign{UUID: "c-1", Title: "Summer grant"},
			Response: webhook.Response{
				UUID:      "r-1",
				Reference: "REF-1",
				Status:    "pending",
				User:      webhook.User{Email: "ada@example.com", FirstName: "Ada", LastName: "Lovelace"},
				Responses: map[string]webhook.Answer{"motivation": {Value: []string{"To learn"}}},
				CreatedAt: at,
			},
		},
	}
	if got := parse(t, "documented"); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestDocumentedEventTypes(t *testing.T) {
	documented := []webhook.EventType{
		"response.created", "response.updated", "response.status_changed",
		"response.completed", "signature.completed", "file.uploaded",
	}
	if got := webhook.EventTypes(); !slices.Equal(got, documented) {
		t.Errorf("EventTypes returns %q", got)
	}
	for _, typ := range documented {
		// Each has a payload named after it.
		equal(t, parse(t, string(typ)).Type, typ, "got %q")
	}
}

func TestKnownEventTypesAddsOptInEvents(t *testing.T) {
	if got := webhook.KnownEventTypes(); !slices.Equal(got, append(webhook.EventTypes(), "response.deleted")) {
		t.Errorf("KnownEventTypes returns %q", got)
	}
	e := parse(t, "response.deleted")
	want := webhook.Data{Campaign: webhook.Campaign{UUID: e.Data.Campaign.UUID}, Response: webhook.Response{UUID: e.Data.Response.UUID, Reference: e.Data.Response.Reference}}
	if e.Type != webhook.ResponseDeleted || e.Data.Response.Reference == "" || !reflect.DeepEqual(e.Data, want) {
		t.Errorf("got %+v", e)
	}
}

func TestParsePayloadsByType(t *testing.T) {
	if e := parse(t, "response.updated"); !reflect.DeepEqual(e.Data.Changes, []string{"/user/email", "/responses/motivation"}) {
		t.Errorf("changes are %q", e.Data.Changes)
	}
	if e := parse(t, "response.status_changed"); e.Data.PreviousStatus != "pending" || e.Data.Response.Status != "validated" {
		t.Errorf("got %q to %q", e.Data.PreviousStatus, e.Data.Response.Status)
	}
	if e := parse(t, "response.completed"); e.Data.Response.CompletedAt.IsZero() {
		t.Error("no completedAt")
	}
	if e := parse(t, "signature.completed"); e.Data.Signature == nil || e.Data.Signature.Signer.Email != "ada@example.com" ||
		!e.Data.Signature.SignedAt.Equal(time.Date(2026, 11, 21, 8, 59, 59, 999e6, time.UTC)) ||
		!e.Data.Signature.CreatedAt.Equal(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)) {
		t.Errorf("signature is %+v", e.Data.Signature)
	}
	if e := parse(t, "file.uploaded"); e.Data.File == nil || e.Data.File.Size != 5<<30 || e.Data.File.Name != "Lebenslauf – Ada.pdf" {
		t.Errorf("file is %+v", e.Data.File)
	}
	if e := parse(t, "truncated"); !e.Data.Truncated || e.Data.Response.Responses != nil {
		t.Errorf("got %+v", e.Data)
	}
	if e := parse(t, "test"); !e.Test {
		t.Error("not marked as a test")
	}
	e := parse(t, "response.created")
	if e.Test || e.Data.Truncated || e.Data.File != nil || e.Data.Signature != nil || e.ID == "" || e.Data.Response.CampaignUUID == "" {
		t.Errorf("got %+v", e)
	}
	if empty, ok := e.Data.Response.Responses["remarks"]; !ok || len(empty.Value) != 0 {
		t.Errorf("the module answered empty is %+v, %v", empty, ok)
	}
}

func TestParseEventToleratesAdditions(t *testing.T) {
	for name, content := range map[string]string{
		"unknown members":   `{"event":"response.created","v":2,"data":{"campaign":{"uuid":"c","color":[1]},"response":{"uuid":"r","user":{"phone":1},"score":{}},"more":null}}`,
		"unknown type":      `{"event":"response.archived","data":{}}`,
		"no data":           `{"event":"response.created"}`,
		"null members":      `{"event":"response.created","id":null,"timestamp":null,"data":{"campaign":null,"response":{"completedAt":null,"responses":null}}}`,
		"white space":       " \r\n{ \"event\" : \"response.created\" }\n",
		"another time zone": `{"event":"response.created","timestamp":"2026-11-21T09:30:00+01:00"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := webhook.ParseEvent([]byte(content)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestParseEventRefuses(t *testing.T) {
	for name, content := range map[string]string{
		"empty":           ``,
		"not JSON":        `hello`,
		"null":            `null`,
		"array":           `[{"event":"response.created"}]`,
		"string":          `"response.created"`,
		"no type":         `{"id":"e-1","data":{}}`,
		"empty type":      `{"event":""}`,
		"two values":      `{"event":"response.created"}{}`,
		"cut off":         `{"event":"response.created"`,
		"type is no text": `{"event":7}`,
		"bad time":        `{"event":"response.created","timestamp":"private"}`,
		"time is no text": `{"event":"response.created","timestamp":12345}`,
		"value is text":   `{"event":"response.created","data":{"response":{"responses":{"m":{"value":"private"}}}}}`,
		"value of number": `{"event":"response.created","data":{"response":{"responses":{"m":{"value":[12345]}}}}}`,
		"size too large":  `{"event":"file.uploaded","data":{"file":{"size":12345e99}}}`,
		"deep":            `{"event":"x","data":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			e, err := webhook.ParseEvent([]byte(content))
			if !errors.Is(err, webhook.ErrMalformedEvent) {
				t.Fatalf("got %v, want ErrMalformedEvent", err)
			}
			if !reflect.DeepEqual(e, webhook.Event{}) {
				t.Errorf("got %+v with an error", e)
			}
			if strings.Contains(err.Error(), "private") || strings.Contains(err.Error(), "12345") {
				t.Errorf("%q repeats the body", err)
			}
		})
	}
}
