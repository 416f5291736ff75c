package formsvc

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"sync"
	"time"
)

// An ID identifies a record: a UUID in its canonical text form, 36 characters
// in lower case (RFC 9562). The empty ID means "none". IDs made by this
// package are version 7, so they sort by the time they were made, and every
// list is ordered by them.
type ID string

// idLength is how long an ID is.
const idLength = 36

// short returns what people tell an identity by: its end, which is random.
func (id ID) short() string { return "…" + string(id[max(len(id)-8, 0):]) }

// ParseID reads an ID that people or programs wrote. The digits may be in
// upper case (RFC 9562, §4); everything else must be as in the canonical form,
// or ok is false.
func ParseID(s string) (id ID, ok bool) {
	if id = ID(s); id.Valid() { // as nearly always
		return id, true
	}
	if id = ID(strings.ToLower(s)); id.Valid() {
		return id, true
	}
	return "", false
}

// Valid reports whether id is a UUID in its canonical text form. Stores take an
// ID that is not for the ID of no record.
func (id ID) Valid() bool {
	if len(id) != idLength {
		return false
	}
	for i := range len(id) {
		c := id[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

// FloorID returns the smallest version 7 ID that can be made at t or later. The
// reverse does not hold: an ID made shortly before t, or under a clock that was
// set back before t, may sort after it.
func FloorID(t time.Time) ID {
	var b [16]byte
	putMillis(&b, max(t.UnixMilli(), 0))
	b[6], b[8] = 0x70, 0x80
	return encodeID(b)
}

// DeliveryID returns the identifier of the delivery of event to webhook. It is
// derived from the two, in the shape of a version 7 UUID with the event's time,
// so that one event can never have two deliveries to one webhook, whichever
// store or node makes it: the last ten bytes are those of
// SHA-256(event bytes ‖ webhook bytes), with the version and variant bits set.
func DeliveryID(event, webhook ID) ID {
	var in [32]byte
	decodeID(in[:16], event)
	decodeID(in[16:], webhook)
	sum := sha256.Sum256(in[:])
	var b [16]byte
	copy(b[:6], in[:6])
	copy(b[6:], sum[6:16])
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	return encodeID(b)
}

// NewID returns a random version 7 ID that is made at t, for what is not made by a
// [Service]: two of the same millisecond are in no order.
func NewID(t time.Time) ID { return new(idGenerator).next(t) }

// hashedID returns an identifier in the shape of a version 8 UUID: the first bytes of
// SHA-256(s).
func hashedID(s string) ID {
	sum := sha256.Sum256([]byte(s))
	b := [16]byte(sum[:])
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	return encodeID(b)
}

// idGenerator makes version 7 UUIDs that never decrease, also when the clock
// steps back: 48 bits of milliseconds, a 12-bit counter that starts at a random
// value each millisecond (RFC 9562 §6.2, method 1), 62 random bits.
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
	if millis > g.millis {
		g.millis = millis
		g.counter = binary.BigEndian.Uint16(b[6:8]) & 0x7ff
	} else if g.counter++; g.counter > 0xfff {
		g.millis++
		g.counter = 0
	}
	putMillis(&b, g.millis)
	binary.BigEndian.PutUint16(b[6:8], g.counter|0x7000)
	g.mu.Unlock()
	b[8] = b[8]&0x3f | 0x80
	return encodeID(b)
}

func putMillis(b *[16]byte, millis int64) {
	var t [8]byte
	binary.BigEndian.PutUint64(t[:], uint64(millis)) //nolint:gosec // callers pass max(…, 0)
	copy(b[:6], t[2:])
}

func encodeID(b [16]byte) ID {
	var s [36]byte
	hex.Encode(s[0:8], b[0:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:36], b[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return ID(s[:])
}

// decodeID writes the 16 bytes of a canonical ID to dst; of any other text it
// writes what it can, which only ever makes a different hash.
func decodeID(dst []byte, id ID) {
	var s [32]byte
	n := 0
	for i := 0; i < len(id) && n < len(s); i++ {
		if id[i] != '-' {
			s[n] = id[i]
			n++
		}
	}
	_, _ = hex.Decode(dst, s[:n])
}
