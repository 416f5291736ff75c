package httpx

import (
	"bytes"
	"io"
	"math"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// A pooled call keeps no large buffer.
func TestPooledCallsDropLargeBuffers(t *testing.T) {
	c := new(call)
	for _, size := range []int{100, keep / 2, keep * 4} {
		c.begin(httptest.NewRecorder(), httptest.NewRequest("POST", "/", nil))
		text := `{"user":{"email":"a@example.com","firstName":"\n` + strings.Repeat("x", size) + `"},"responses":{}}`
		if err := c.body.read(strings.NewReader(text), 1<<20); err != nil {
			t.Fatal(err)
		}
		if _, err := c.body.responseInput(); err != nil {
			t.Fatal(err)
		}
		c.out = append(c.out, text...)
		c.reset()
		if cap(c.out) > keep || cap(c.body.raw) > keep || cap(c.body.scratch) > keep {
			t.Errorf("%d: keeps %d, %d and %d bytes", size, cap(c.out), cap(c.body.raw), cap(c.body.scratch))
		}
		if c.r != nil || c.w != nil || c.who != nil || c.body.name != nil || c.body.faults.list != nil || c.body.strings.chunk.Len() > 0 {
			t.Errorf("%d: holds some of the request", size)
		}
	}
}

func TestStringArena(t *testing.T) {
	for _, hint := range []int{0, 10, 1 << 20} {
		a := stringArena{hint: hint}
		var got, want []string
		for i := range 200 {
			text := strings.Repeat(string(rune('a'+i%26)), i*i%700)
			want = append(want, text)
			buffer := []byte(text)
			got = append(got, a.string(buffer))
			clear(buffer)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("hint %d: string %d is %q", hint, i, got[i])
			}
		}
	}
}

func TestCursorRoundTrip(t *testing.T) {
	const id = formsvc.ID("018f0000-1234-7abc-8def-0123456789ab")
	sum := scope{1, 2, 3, 4, 5, 6, 7, 255}
	text := string(appendCursor(nil, id, sum))
	if got, ok := parseCursor(text, sum); !ok || got != id {
		t.Errorf("%s became %s, %v", text, got, ok)
	}
	if _, ok := parseCursor(text, scope{}); ok {
		t.Error("taken elsewhere")
	}
}

func TestPositionRoundTrip(t *testing.T) {
	sum := scope{1, 2, 3, 4, 5, 6, 7, 255}
	for _, p := range []formsvc.EventPosition{
		{}, {Commit: 1}, {Row: 1}, {Commit: 1 << 40, Row: 3}, {Commit: math.MaxInt64, Row: math.MinInt64}, {Commit: -1, Row: -2},
	} {
		text := string(appendPosition(nil, p, sum))
		if got, ok := parsePosition(text, sum); !ok || got != p {
			t.Errorf("%+v became %+v, %v", p, got, ok)
		}
		if _, ok := parsePosition(text, scope{}); ok {
			t.Error("taken elsewhere")
		}
	}
}

// The body may arrive in pieces of any size.
func TestReadInPieces(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789"), 5_000)
	for _, size := range []int{1, 7, 4096, 100_000} {
		var d decoder
		if err := d.read(&pieces{text, size}, int64(len(text))); err != nil || !bytes.Equal(d.raw, text) {
			t.Errorf("pieces of %d: %v, %d bytes", size, err, len(d.raw))
		}
		d.reset()
		if err := d.read(&pieces{text, size}, int64(len(text))-1); err == nil {
			t.Errorf("pieces of %d: no error over the limit", size)
		}
	}
}

type pieces struct {
	rest []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	n := copy(b, p.rest[:min(p.size, len(p.rest))])
	p.rest = p.rest[n:]
	if len(p.rest) == 0 {
		return n, io.EOF
	}
	return n, nil
}
