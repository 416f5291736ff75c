package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/formsvc/toolkit/formsvc"
)

// CreateResponse implements [formsvc.Store].
func (s *Store) CreateResponse(
	ctx context.Context, r formsvc.Response, campaignVersion int64, change formsvc.Change,
) error {
	r, err := stored(&r)
	if err != nil {
		return err
	}
	if k := change.Idempotency; k != nil {
		k = new(*k)
		k.Response, change.Idempotency = new(r), k
	}
	var c *campaign
	return s.write(ctx, func() (_ formsvc.Change, err error) {
		c, err = s.campaign(formsvc.CampaignKey{AccountID: r.AccountID, ID: r.CampaignID})
		switch {
		case err != nil:
		case c.Version != campaignVersion:
			err = formsvc.ErrStale
		case s.accounts.rows[r.AccountID].references[r.Reference]:
			err = formsvc.ErrConflict
		case change.Limit > 0 && len(s.accounts.rows[r.AccountID].references) >= change.Limit:
			err = formsvc.ErrLimit
		default:
			err = c.full(nil, change.Places)
		}
		return change, err
	}, func() error {
		if err := c.responses.add(r.ID, &response{Response: r, places: change.Places}); err != nil {
			return err
		}
		s.accounts.rows[r.AccountID].references[r.Reference] = true
		c.ResponseCount++
		return nil
	})
}

// ImportResponses implements [formsvc.Store].
func (s *Store) ImportResponses(
	ctx context.Context, key formsvc.CampaignKey, campaignVersion int64, list []formsvc.NewResponse, limit int,
) (int, error) {
	var c *campaign
	var fresh []*response
	var change formsvc.Change
	err := s.write(ctx, func() (_ formsvc.Change, err error) {
		if c, err = s.campaign(key); err != nil {
			return change, err
		}
		taken := maps.Clone(s.accounts.rows[key.AccountID].references)
		for i := range list {
			r, err := stored(&list[i].Response)
			if err != nil {
				return change, err
			}
			r.AccountID, r.CampaignID = key.AccountID, key.ID
			if taken[r.Reference] || taken["\x00"+string(r.ID)] || c.responses.rows[r.ID] != nil {
				continue
			}
			taken[r.Reference], taken["\x00"+string(r.ID)] = true, true
			fresh, change.Events = append(fresh, &response{Response: r, places: list[i].Places}), append(change.Events, list[i].Events...)
		}
		if len(fresh) > 0 && c.Version != campaignVersion {
			err = formsvc.ErrStale
		} else if limit > 0 && len(fresh) > max(limit-len(s.accounts.rows[key.AccountID].references), 0) {
			err = formsvc.ErrLimit
		}
		return change, err
	}, func() error {
		for _, r := range fresh {
			_ = c.responses.add(r.ID, r) // it isn't taken
			s.accounts.rows[r.AccountID].references[r.Reference] = true
			c.ResponseCount++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return len(fresh), nil
}

// UpdateResponse implements [formsvc.Store].
func (s *Store) UpdateResponse(
	ctx context.Context, key formsvc.ResponseKey, decide func(*formsvc.Response) (formsvc.Change, error),
) (formsvc.Response, error) {
	var row *response
	var r formsvc.Response
	var places []formsvc.Place
	err := s.write(ctx, func() (change formsvc.Change, err error) {
		if row, err = s.response(key); err != nil {
			return change, err
		}
		r = row.Response
		if change, err = decide(&r); err != nil || r.Version == row.Version {
			return formsvc.Change{}, err
		}
		if change.PerFile != nil {
			change.AddPerFile(s.filesOf(row, formsvc.PageQuery{Limit: formsvc.MaxLimit, Ascending: true}).Items)
		}
		c := s.campaigns.rows[key.CampaignID]
		if places = change.Places; change.CampaignVersion != 0 && change.CampaignVersion != c.Version {
			err = formsvc.ErrStale
		} else if places != nil {
			err = c.full(row, places)
		}
		if err == nil {
			r, err = stored(&r)
		}
		return change, err
	}, func() error {
		if r.Version != row.Version {
			row.Response = r
		}
		if places != nil {
			row.places = places
		}
		r = row.Response
		return nil
	})
	return r, err
}

// Response implements [formsvc.Store].
func (s *Store) Response(ctx context.Context, key formsvc.ResponseKey) (formsvc.Response, error) {
	return read(ctx, s, s.response, key, (*response).copy)
}

// Responses implements [formsvc.Store].
func (s *Store) Responses(ctx context.Context, q formsvc.ResponseQuery) (formsvc.Page[formsvc.Response], error) {
	if err := formsvc.CheckText(q.Filter.Texts()...); err != nil {
		return formsvc.Page[formsvc.Response]{}, err
	}
	key := formsvc.CampaignKey{AccountID: q.AccountID, ID: q.CampaignID}
	return read(ctx, s, s.campaign, key, func(c *campaign) formsvc.Page[formsvc.Response] {
		var match func(*response) bool // without a filter the total is a counter
		if !q.Filter.IsZero() {
			match = func(row *response) bool { return q.Filter.Match(&row.Response) }
		}
		return cutAt(page(&c.responses, q.Page, q.NoTotal, match, (*response).copy), q.Page, (*formsvc.Response).Size)
	})
}

// ResponseCounts implements [formsvc.Store].
func (s *Store) ResponseCounts(ctx context.Context, key formsvc.CampaignKey) (map[string]int64, error) {
	return read(ctx, s, s.campaign, key, func(c *campaign) map[string]int64 {
		counts := map[string]int64{}
		for _, r := range c.responses.rows {
			counts[r.Status]++
		}
		return counts
	})
}

// Taken implements [formsvc.Store].
func (s *Store) Taken(ctx context.Context, key formsvc.CampaignKey, keys []string) (map[string]int64, error) {
	return read(ctx, s, s.campaign, key, func(c *campaign) map[string]int64 {
		counts := map[string]int64{"": c.taken("", nil)}
		for _, place := range keys {
			if n := c.taken(place, nil); n > 0 {
				counts[place] = n
			}
		}
		return counts
	})
}

// taken returns how many responses have a place, apart from one. The caller holds s.mu.
func (c *campaign) taken(place string, but *response) (n int64) {
	for _, r := range c.responses.rows {
		if r != but && (place == "" && r.Status != formsvc.StatusSpam || place != "" && slices.ContainsFunc(r.places, func(p formsvc.Place) bool { return p.Key == place })) {
			n++
		}
	}
	return n
}

// full returns why a response, nil for a new one, can't have the places, or nil.
func (c *campaign) full(r *response, places []formsvc.Place) error {
	for _, p := range places {
		if p.Max >= 0 && c.taken(p.Key, r) >= int64(p.Max) {
			return p.Full
		}
	}
	return nil
}

// DeleteResponse implements [formsvc.Store].
func (s *Store) DeleteResponse(
	ctx context.Context, key formsvc.ResponseKey, decide func(*formsvc.Response) (formsvc.Change, error),
) (files []formsvc.ID, err error) {
	var row *response
	err = s.write(ctx, func() (change formsvc.Change, err error) {
		if row, err = s.response(key); err != nil {
			return change, err
		}
		return decided(new(row.Response), decide)
	}, func() error {
		files = s.remove(row)
		for _, k := range s.records {
			if k.AccountID == key.AccountID && k.ResponseID == key.ID {
				k.Result, k.Response = nil, nil
			}
		}
		return nil
	})
	return files, err
}

// remove removes a response with its files, comments and signatures, and updates the
// counters. It returns the files. The caller holds s.mu.
func (s *Store) remove(row *response) (files []formsvc.ID) {
	a := s.accounts.rows[row.AccountID]
	pruneTable(&s.files, len(s.files.ids), func(f *formsvc.File) bool {
		gone := row.has(f.CampaignID, f.ResponseID)
		if gone {
			a.fileBytes -= f.Size
			files = append(files, f.ID)
		}
		return gone
	})
	pruneTable(&s.comments, len(s.comments.ids), func(c *formsvc.Comment) bool { return row.has(c.CampaignID, c.ResponseID) })
	pruneTable(&s.signed, len(s.signed.ids), func(sig *formsvc.Signature) bool { return row.has(sig.CampaignID, sig.ResponseID) })
	delete(a.references, row.Reference)
	c := s.campaigns.rows[row.CampaignID]
	c.responses.remove(row.ID)
	c.ResponseCount--
	slices.Sort(files)
	return files
}

// has reports whether a record of that response belongs to this one.
func (r *response) has(campaign, id formsvc.ID) bool { return id == r.ID && campaign == r.CampaignID }

// response returns a response of a campaign of an account. The caller holds s.mu.
func (s *Store) response(key formsvc.ResponseKey) (*response, error) {
	c, err := s.campaign(formsvc.CampaignKey{AccountID: key.AccountID, ID: key.CampaignID})
	if err != nil {
		return nil, err
	}
	return c.responses.get(key.ID)
}

func (r *response) copy() formsvc.Response { return r.Response }
