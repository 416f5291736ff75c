package formsvc

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// An ID identifies a record: a UUID in its canonical text form, 36 characters in lower case (RFC
// 9562). The empty ID means "none". IDs created by this package are version 7, so they sort by
// creation time, and every list is ordered by them.
type ID string

// idLength is the length of an ID.
const idLength = 36

// short returns the end of an identity, which is random, to be shown to people.
func (id ID) short() string { return "…" + string(id[max(len(id)-8, 0):]) }

// ParseID parses an ID. It accepts digits in upper case (RFC 9562, §4); otherwise ok is false
// unless s has the canonical form.
func ParseID(s string) (id ID, ok bool) {
	if id = ID(strings.ToLower(s)); id.Valid() {
		return id, true
	}
	return "", false
}

// Valid reports whether id is a UUID in its canonical text form. To stores an invalid ID is the ID of no record.
func (id ID) Valid() bool {
	if len(id) != idLength { // uuid.Parse accepts other forms
		return false
	}
	_, err := uuid.Parse(string(id))
	return err == nil && strings.ToLower(string(id)) == string(id)
}

// FloorID returns the smallest version 7 ID that can be created at t or later. An ID that was
// created earlier may sort after it, but before [CeilingID].
func FloorID(t time.Time) ID {
	var b [16]byte
	putTime(&b, t.UnixMilli(), 0)
	b[8] = 0x80
	return encodeID(b)
}

// maxLead is how far the time in an ID may be ahead of the time when it was created, which happens
// after the clock was set back.
const maxLead = time.Hour

// CeilingID returns an ID that sorts after all that were created before t.
func CeilingID(t time.Time) ID { return FloorID(t.Add(2 * maxLead)) }

// DeliveryID returns the identifier of the delivery of event to webhook. It is a version 7 UUID with the event's time
// whose last ten bytes are those of SHA-256(event bytes ‖ webhook bytes), with the version and variant bits set. So
// every store and node derives the same one, and one event can't have two deliveries to one webhook.
func DeliveryID(event, webhook ID) ID {
	e, _ := uuid.Parse(string(event)) // zero for invalid text, which no store has
	w, _ := uuid.Parse(string(webhook))
	return derivedID(e[:6], append(e[:], w[:]...))
}

// derivedID returns the version 7 UUID with that time whose other bits are from the hash of a text.
func derivedID(at, text []byte) ID {
	sum := sha256.Sum256(text)
	var b [16]byte
	copy(b[:6], at)
	copy(b[6:], sum[6:16])
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	return encodeID(b)
}

// hashID returns the version 8 UUID of a text.
func hashID(text string) ID {
	return ID(uuid.NewHash(sha256.New(), uuid.Nil, []byte(text), 8).String())
}

// NewID returns a random version 7 ID with the time t, for records that no [Service] creates. IDs
// of the same millisecond have no particular order.
func NewID(t time.Time) ID { return new(idGenerator).next(t) }

// idGenerator generates version 7 UUIDs that never decrease unless the clock is set back by more than maxLead. They
// have 48 bits of milliseconds, a 12-bit counter that starts at a random value each millisecond
// (RFC 9562 §6.2, method 1), and 62 random bits.
type idGenerator struct {
	mu      sync.Mutex
	millis  int64
	counter uint16
}

func (g *idGenerator) next(now time.Time) ID {
	var b [16]byte
	_, _ = rand.Read(b[6:]) // crypto/rand.Read never fails since Go 1.24
	millis := max(now.UnixMilli(), 0)
	g.mu.Lock()
	if millis > g.millis || millis < g.millis-maxLead.Milliseconds() {
		g.millis = millis
		g.counter = binary.BigEndian.Uint16(b[6:8]) & 0x7ff
	} else if g.counter++; g.counter > 0xfff {
		g.millis++
		g.counter = 0
	}
	putTime(&b, g.millis, g.counter)
	g.mu.Unlock()
	b[8] = b[8]&0x3f | 0x80
	return encodeID(b)
}

// putTime sets the first eight bytes of a version 7 UUID.
func putTime(b *[16]byte, millis int64, counter uint16) {
	binary.BigEndian.PutUint64(b[:], uint64(max(millis, 0))<<16|0x7000|uint64(counter))
}

func encodeID(b [16]byte) ID { return ID(uuid.UUID(b).String()) }
