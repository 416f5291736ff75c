package formsvc_test

import (
	"bytes"
	"crypto/sha256"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/formsvc/toolkit/formsvc"
)

// version7 is RFC 9562 §5.7 in canonical form.
var version7 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func sixteenBytes(t *rapid.T, label string) [16]byte {
	return [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, label))
}

// moments generates times over the whole range of clocks, with fractions of a millisecond.
func moments() *rapid.Generator[time.Time] {
	return rapid.Map(rapid.Int64Range(0, 4e18), func(ns int64) time.Time { return time.Unix(0, ns) })
}

// ParseID accepts the canonical form with digits in any case, and nothing else.
func TestParseIDIsStrict(t *testing.T) {
	canonical := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	const good = "01a1fd3a-03bb-7000-8000-000000000002"
	for _, s := range []string{
		"", good[1:], good + "0", " " + good[1:], good[:35] + "\n", strings.ReplaceAll(good, "-", ""),
		"{" + good[1:35] + "}", "urn:uuid:" + good, strings.Repeat("-", 36), good[:35] + "g", good[:34] + "é",
		good[:8] + "0" + good[9:], "0" + good[:35],
	} {
		if id, ok := formsvc.ParseID(s); ok || id != "" {
			t.Errorf("ParseID(%q) returns %q, %t", s, id, ok)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := []byte(formsvc.EncodeID(sixteenBytes(t, "bytes")))
		s[rapid.IntRange(0, 35).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		id, ok := formsvc.ParseID(string(s))
		if lower := bytes.ToLower(s); ok != canonical.Match(lower) || ok && string(id) != string(lower) {
			t.Fatalf("ParseID(%q) returns %q, %t", s, id, ok)
		}
		if formsvc.ID(s).Valid() != canonical.Match(s) {
			t.Fatalf("Valid of %q is %t", s, formsvc.ID(s).Valid())
		}
	})
	if id, ok := formsvc.ParseID(strings.ToUpper(good)); !ok || id != good {
		t.Errorf("in upper case: %q, %t", id, ok)
	}
}

// IDs of a generator increase unless its clock is set back by more than an hour, and sort between FloorID and CeilingID.
func TestIDsWhenTheClockJumps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		next := formsvc.NewIDGenerator()
		now := moments().Draw(t, "start")
		last, latest := formsvc.ID(""), now
		for range rapid.IntRange(1, 200).Draw(t, "n") {
			id := next(now)
			if id <= last && now.After(latest.Add(-time.Hour+time.Millisecond)) {
				t.Fatalf("%s follows %s", id, last)
			}
			if !version7.MatchString(string(id)) {
				t.Fatalf("%s is not version 7", id)
			}
			if floor, ceiling := formsvc.FloorID(now), formsvc.CeilingID(now.Add(1)); id < floor || id >= ceiling {
				t.Fatalf("%s was made at %v, but isn't between %s and %s", id, now, floor, ceiling)
			}
			if now.After(latest) || now.Before(latest.Add(-time.Hour)) {
				latest = now
			}
			last = id
			now = now.Add(time.Duration(rapid.OneOf(
				rapid.Just(int64(0)), rapid.Int64Range(-3e6, 3e6), rapid.Int64Range(-1e15, 1e15),
			).Draw(t, "step")))
			if now.Before(time.Unix(0, 0)) {
				now = time.Unix(0, 0)
			}
		}
	})
}

func TestIDsAreUniqueUnderConcurrency(t *testing.T) {
	next := formsvc.NewIDGenerator()
	var (
		wg   sync.WaitGroup
		seen sync.Map
	)
	for n := range 8 {
		wg.Go(func() {
			for i := range 2_000 {
				// Every worker has its own clock, and they differ.
				id := next(start().Add(time.Duration((n*7+i*13)%11-5) * time.Millisecond))
				if _, twice := seen.LoadOrStore(id, true); twice {
					t.Errorf("%s came twice", id)
				}
			}
		})
	}
	wg.Wait()
}

// FloorID sorts before all IDs created from then on, and after all IDs created in an earlier
// millisecond by a generator whose clock was never set back.
func TestFloorID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at, later := moments().Draw(t, "t"), moments().Draw(t, "u")
		if later.Before(at) {
			at, later = later, at
		}
		floor := formsvc.FloorID(at)
		if !version7.MatchString(string(floor)) {
			t.Fatalf("%s is not version 7", floor)
		}
		if id := formsvc.NewIDGenerator()(later); id < floor {
			t.Fatalf("%s made at %v sorts before %s of %v", id, later, floor, at)
		}
		if id := formsvc.NewIDGenerator()(at); later.UnixMilli() > at.UnixMilli() && id >= formsvc.FloorID(later) {
			t.Fatalf("%s made at %v sorts after the floor of %v", id, at, later)
		}
	})
	equal(t, formsvc.FloorID(start()), "01a1fd3a-03bb-7000-8000-000000000000", "got %s")
	equal(t, formsvc.FloorID(time.Unix(-1, 0)), "00000000-0000-7000-8000-000000000000", "before 1970: %s")
}

func TestDeliveryID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		event, hook := sixteenBytes(t, "event"), sixteenBytes(t, "webhook")
		id := formsvc.DeliveryID(formsvc.EncodeID(event), formsvc.EncodeID(hook))
		// The definition in its documentation, so that other stores can follow it.
		sum := sha256.Sum256(append(event[:], hook[:]...))
		want := append(append([]byte{}, event[:6]...), sum[6:16]...)
		want[6], want[8] = want[6]&0x0f|0x70, want[8]&0x3f|0x80
		if id != formsvc.EncodeID([16]byte(want)) {
			t.Fatalf("got %s, want %x", id, want)
		}
		if event != hook && formsvc.DeliveryID(formsvc.EncodeID(hook), formsvc.EncodeID(event)) == id {
			t.Fatalf("%x and %x have one ID both ways", event, hook)
		}
	})
	// Fixed, since other stores and other languages derive it too.
	const event, hook = "01a1fd3a-03bb-7000-8000-000000000002", "01a1fd3a-03bb-7000-8000-000000000003"
	equal(t, formsvc.DeliveryID(event, hook), "01a1fd3a-03bb-7563-9243-655260c5d803", "got %s")
}
