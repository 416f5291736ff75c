package memory

import (
	"context"
	"slices"

	"github.com/formsvc/toolkit/formsvc"
)

// Erase implements [formsvc.Store].
func (s *Store) Erase(ctx context.Context, q formsvc.EraseQuery) (out formsvc.Erased, err error) {
	if err := s.enter(ctx); err != nil {
		return out, err
	}
	defer s.mu.Unlock()
	a, err := s.account(q.AccountID)
	if err != nil {
		return out, nil
	}
	replies := make(map[formsvc.ID]bool)
	for _, id := range q.RepliesOf {
		replies[id] = id != ""
	}
	about := make(map[formsvc.ID]bool)
	for _, key := range q.Responses {
		_, err := s.response(key)
		about[key.ID] = err == nil && key.AccountID == a.ID
	}
	raise := slices.DeleteFunc(slices.Clone(q.Raise), func(e formsvc.Event) bool { return !about[e.ResponseID] })
	if err := s.checkEvents(raise); err != nil {
		return out, err
	}
	for _, key := range q.Responses {
		if r, err := s.response(key); err == nil && about[key.ID] {
			s.remove(r)
			replies[key.ID] = true
			out.Responses++
			out.FileIDs = append(out.FileIDs, r.files.ids...)
		}
	}
	slices.Sort(out.FileIDs)
	for _, id := range q.Signatures {
		if sig, err := s.signed.get(id); err == nil && sig.AccountID == a.ID {
			s.signed.remove(id)
			a.campaigns.rows[sig.CampaignID].responses.rows[sig.ResponseID].signatures.remove(id)
			out.Signatures++
		}
	}
	a.events = slices.DeleteFunc(a.events, func(e *event) bool {
		if !about[e.ResponseID] && !slices.Contains(q.Events, e.ID) {
			return false
		}
		s.forget(a, e)
		out.Events++
		return true
	})
	for key, r := range s.records {
		if r.AccountID != a.ID {
			continue
		}
		if replies[r.ResponseID] {
			r.Result, r.Response = nil, nil
		}
		if q.Refusals && r.ResponseID == "" && r.Refused {
			delete(s.records, key)
		}
	}
	s.raise(raise)
	return out, nil
}
