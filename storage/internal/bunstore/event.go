package bunstore

import (
	"errors"
	"fmt"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// TestBit marks the type of a test event, in events and in deliveries.
const TestBit int64 = 1 << 16

// EventBit returns the bit of an event type in a webhook's set of types; 0 for an unknown
// type.
func EventBit(t formsvc.EventType) int64 {
	for i, known := range webhook.KnownEventTypes() {
		if known == t {
			return 1 << i
		}
	}
	return 0
}

// TypeOf returns the stored type of an event.
func TypeOf(e *formsvc.Event) int64 {
	if e.Test {
		return EventBit(e.Type) | TestBit
	}
	return EventBit(e.Type)
}

// eventOf is the inverse of TypeOf.
func eventOf(stored int64) (t formsvc.EventType, test bool) {
	for i, t := range webhook.KnownEventTypes() {
		if stored&^TestBit == 1<<i {
			return t, stored&TestBit != 0
		}
	}
	return "", stored&TestBit != 0
}

// eventBits returns the stored set of event types.
func eventBits(types []formsvc.EventType) (bits int64) {
	for _, t := range types {
		bits |= EventBit(t)
	}
	return bits
}

// checkTypes rejects event types that have no bit.
func checkTypes(types ...formsvc.EventType) error {
	for _, t := range types {
		if EventBit(t) == 0 {
			return fmt.Errorf("bunstore: unknown event type: %w", formsvc.ErrInvalid)
		}
	}
	return nil
}

func checkEvent(e *formsvc.Event) error {
	return errors.Join(checkIDs(e.ID, e.AccountID, e.CampaignID, e.ResponseID), checkTypes(e.Type), formsvc.CheckText(e.TraceParent))
}
