package intake

import (
	"context"
)

// count reads how many places are left, if the campaign has limits.
func (v *visit) count() (err error) {
	if !v.campaign.Limited() {
		return nil
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), workTimeout)
	defer cancel()
	slot, err := acquire(ctx, v.h.opts.Limits.Lookups, v.address)
	if err != nil {
		return err
	}
	defer slot.Release()
	v.places, err = v.h.svc.Responses.Places(ctx, v.campaign)
	return err
}

// left returns the sentence about the places that are left, "" if they are more than ten, and more than a fifth.
func (v *visit) left(left, most int64) string {
	if left > max(10, most/5) {
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
		left, limited := v.places.Choices[f.module.Name][o.Value]
		if !limited {
			continue
		}
		o.Note = v.left(left, int64(f.module.Places[o.Value]))
		if left == 0 {
			o.Note, o.Chosen = v.t["choiceFull"], o.Chosen && !fresh
			o.Full = !o.Chosen
		}
	}
}
