package wire

import (
	"errors"
	"io"
	"net/http"
	"os"
	"runtime"
)

// readAtOnce is how many bytes of a body are read before other requests have their turn.
const readAtOnce = 64 << 10

// Read reads a body of at most limit bytes, of which length are announced, or -1. The buffer grows fourfold with the bytes that arrive,
// but not beyond length: a client that only announces a long body gets no memory. reserve is called with each new size.
func (d *Body) Read(body io.Reader, length, limit int64, reserve func(size int64) error) error {
	if d.Raw == nil {
		d.Raw = make([]byte, 0, 4<<10)
	}
	for {
		if len(d.Raw) == cap(d.Raw) {
			size := min(4*int64(cap(d.Raw)), limit+1)
			if length >= int64(cap(d.Raw)) {
				size = min(size, length+1) // one more, to see the end
			}
			if err := reserve(size); err != nil {
				return err
			}
			d.Raw = append(make([]byte, 0, size), d.Raw...)
		}
		if len(d.Raw) >= readAtOnce { // many long bodies together would delay short requests
			runtime.Gosched()
		}
		n, err := body.Read(d.Raw[len(d.Raw):min(cap(d.Raw), len(d.Raw)+readAtOnce)])
		d.Raw = d.Raw[:len(d.Raw)+n]
		if int64(len(d.Raw)) > limit {
			return BodyTooLarge(limit)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return Unreadable(err)
		}
	}
}

// Unreadable returns the problem for a body that broke off or is beyond the memory limit.
func Unreadable(err error) error {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge
	}
	p := BadRequest("body_incomplete", "The body is incomplete or breaks HTTP framing.")
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p = Refuse(http.StatusRequestTimeout, "body_timeout", "The body didn't arrive in time.")
	}
	p.HangUp, p.Cause = true, err
	return p
}
