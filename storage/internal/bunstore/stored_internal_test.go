package bunstore

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// A replay has every field of the response, those added later too.
func TestStoredResult(t *testing.T) {
	want := formsvc.Response{Answers: formsvc.StoredAnswers(`{"a":["1"]}`)}
	at := time.Date(2026, 11, 28, 8, 30, 0, 123_000_000, time.UTC)
	var fill func(v reflect.Value, name string)
	fill = func(v reflect.Value, name string) {
		switch x := v.Addr().Interface().(type) {
		case *time.Time:
			*x = at
			return
		case *formsvc.Answers:
			return
		}
		switch v.Kind() {
		case reflect.String:
			v.SetString(name)
		case reflect.Int64:
			v.SetInt(7)
		case reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i), name+"."+v.Type().Field(i).Name)
			}
		default:
			t.Fatalf("%s is a %v: set it here", name, v.Kind())
		}
	}
	fill(reflect.ValueOf(&want).Elem(), "r")
	text, err := json.Marshal(storedResponse{&want, want.Answers.JSON()})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := storedResult(text); err != nil || *got != want {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
}

// Bits of event types are stored, so they never change.
func TestEventBits(t *testing.T) {
	want := []formsvc.EventType{
		"response.created", "response.updated", "response.status_changed", "response.completed", "signature.completed", "file.uploaded", "response.deleted",
	}
	for i, event := range want {
		if bit := EventBit(event); bit != 1<<i {
			t.Errorf("%s has the bit %b, want %b", event, bit, 1<<i)
		}
	}
	for _, event := range webhook.KnownEventTypes() {
		if !slices.Contains(want, event) {
			t.Errorf("%s has no bit here: add it at the end", event)
		}
	}
}

// Keys of forms are in the order of their time; all others are spread, also among accounts.
func TestRecordHash(t *testing.T) {
	keys := []string{"", "1", "5f8a1c5g", "018f3a2b-7000", "00000000-form:a", "018f3a2b-form:a", "018f3a2c-form:b", "018f3a2c-form:a", "ffffffff-form:a"}
	seen, last := map[string]string{}, ""
	for _, account := range []formsvc.ID{"a", "b"} {
		for i, key := range keys {
			id := string(recordHash(account, key))
			if len(id) != 16 || seen[id] != "" || id != string(recordHash(account, key)) {
				t.Errorf("%q: %x is also %q", key, id, seen[id])
			}
			if seen[id] = key; i > 4 && i != 7 && id <= last {
				t.Errorf("%q comes before %q", key, keys[i-1])
			}
			last = id
		}
	}
}
