package intake

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/gate"
)

// Limits of the campaigns that are kept: how long, how many, and from which size they are few.
const (
	campaignAge   = time.Second
	campaignsMost = 1_000
	campaignSize  = 32 << 10 // bytes without pictures
)

// How many requests use the service at once, how many of them store what is held, and how long others wait for a slot.
const (
	slots     = 64
	heldSlots = 2 // so that bots share few commits with others
	slotWait  = time.Second
)

// botPause delays what looks like a bot, which commonly sends the next form when it has a reply.
const botPause = 200 * time.Millisecond

// slow waits for botPause.
func (v *visit) slow() {
	select {
	case <-v.r.Context().Done():
	case <-time.After(botPause):
	}
}

// acquire takes a slot. The caller must release it.
func acquire(ctx context.Context, from *gate.Gate, tenant string) (gate.Slot, error) {
	slot, err := from.Acquire(ctx, tenant)
	if err != nil {
		err = cmp.Or[error](ctx.Err(), errBusy)
	}
	return slot, err
}

// lookUp calls read with a slot for look-ups.
func (v *visit) lookUp(read func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(v.r.Context(), workTimeout)
	defer cancel()
	slot, err := acquire(ctx, v.h.opts.Limits.Lookups, v.address)
	if err != nil {
		return err
	}
	defer slot.Release()
	return read(ctx)
}

// bodyGrace is how long a body may pause, besides a second for every 16 KiB.
const bodyGrace = 20 * time.Second

// longBody is the size in bytes from which writes get few slots and pauses, as those of the API do.
const longBody = 256 << 10

// A body is that of a form. It takes a place when more than smallBody of text has arrived, so that nothing but bytes keeps one. Files
// go to disk, so they take one of the many slots for transfers of the API instead.
type body struct {
	io.Reader

	v     *visit
	moved int64 // bytes without those of files
	files bool  // whether a file is read now
}

// text returns a body without files, up to a byte more than maxText. announced is its size, or -1.
func (b *body) text(announced int64) ([]byte, error) {
	var text bytes.Buffer
	text.Grow(bytes.MinRead + int(min(max(announced, 0), smallBody))) // what is longer may never arrive
	_, err := text.ReadFrom(io.LimitReader(b, maxText+1))
	return text.Bytes(), err
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	switch {
	case b.files:
		if !b.v.transfer() {
			return 0, errBusy
		}
	default:
		if b.moved += int64(n); b.moved > smallBody && !b.v.place() {
			return 0, errBusy
		}
	}
	return n, err
}

// count reads how many places are left, if the campaign has limits.
func (v *visit) count() error {
	if !v.campaign.HasPlaces() {
		return nil
	}
	return v.lookUp(func(ctx context.Context) (err error) {
		v.places, err = v.h.svc.Responses.Places(ctx, v.campaign)
		return err
	})
}

// full reports whether the campaign takes no more responses.
func (v *visit) full() bool {
	left, limited := v.places[formsvc.Limited{}]
	return limited && left == 0
}

// left returns the sentence about the places that are left, "" if they are more than ten, and more than a fifth.
func (v *visit) left(left int64, most int) string {
	if left > int64(max(10, most/5)) {
		return ""
	}
	return v.t.format("placesLeft", left)
}

// offer says at the choices of a field how many places are left. A full one can't be chosen, but stays what the visitor chose before:
// then sending it again is refused again.
func (v *visit) offer(f *field, fresh bool) {
	if f.module == nil {
		return
	}
	for i := range f.Options {
		o := &f.Options[i]
		left, limited := v.places[formsvc.Limited{Module: f.module.Name, Value: o.Value}]
		if !limited {
			continue
		}
		o.Note = v.left(left, f.module.Places[o.Value])
		if left == 0 {
			o.Note, o.Chosen = v.t["choiceFull"], o.Chosen && !fresh
			o.Full = !o.Chosen
		}
	}
}
