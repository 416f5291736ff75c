package intake

import (
	"context"

	"github.com/formsvc/toolkit/formsvc"
)

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
