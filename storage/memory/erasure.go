package memory

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// Erase implements [formsvc.MaintenanceStore].
func (s *Store) Erase(ctx context.Context, e formsvc.Erasing, change formsvc.Change) (formsvc.Erased, error) {
	if err := formsvc.CheckText(e.AnswersWith); err != nil {
		return formsvc.Erased{}, err
	}
	if err := s.enter(ctx); err != nil {
		return formsvc.Erased{}, err
	}
	defer s.mu.Unlock()
	if e.DryRun {
		change = formsvc.Change{}
	} else if err := s.admit(&change); err != nil {
		return formsvc.Erased{}, err
	}
	var f found
	if a, err := s.account(e.AccountID); err == nil {
		f = s.find(a, &e)
		if !e.DryRun {
			s.removeFound(a, &f)
		}
	}
	s.apply(&change)
	return f.erased(), nil
}

// found has the records that an erasure removes, each once.
type found struct {
	responses  []*response
	signatures []*formsvc.Signature
	events     []*event
	deliveries map[*event][]*queued
	notices    []formsvc.ID
	records    []*formsvc.IdempotencyRecord
}

// find finds the records of an account to remove. The caller holds s.mu.
func (s *Store) find(a *account, e *formsvc.Erasing) found {
	f := found{deliveries: make(map[*event][]*queued)}
	gone := make(map[formsvc.ResponseKey]bool)
	about := make(map[formsvc.ID]bool)
	for _, key := range e.Responses {
		if r, err := s.response(key); err == nil && key.AccountID == a.ID && !gone[key] {
			gone[key], about[key.ID] = true, true
			f.responses = append(f.responses, r)
		}
	}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(e.Signatures))) {
		sig, ok := s.signed.get(id)
		if ok && sig.AccountID == a.ID && !gone[formsvc.ResponseKey{AccountID: a.ID, CampaignID: sig.CampaignID, ID: sig.ResponseID}] {
			f.signatures = append(f.signatures, sig)
		}
	}
	for _, event := range a.events {
		if about[event.ResponseID] || slices.Contains(e.Events, event.ID) {
			f.events = append(f.events, event)
			for _, to := range a.webhooks.rows {
				if d, ok := to.deliveries.get(formsvc.DeliveryID(event.ID, to.ID)); ok {
					f.deliveries[event] = append(f.deliveries[event], d)
				}
			}
			for _, id := range a.notices.ids {
				if a.notices.rows[id].EventID == event.ID {
					f.notices = append(f.notices, id)
				}
			}
		}
	}
	text := formsvc.FoldEmail(e.AnswersWith)
	for _, r := range s.records {
		if r.AccountID != a.ID || r.Status == http.StatusGone {
			continue
		}
		asked := e.Refusals && r.Status >= http.StatusBadRequest
		if r.ResponseID != "" {
			asked = slices.Contains(e.AnswersOf, r.ResponseID)
		}
		if about[r.ResponseID] || asked && strings.Contains(formsvc.FoldEmail(string(r.Body)), text) {
			f.records = append(f.records, r)
		}
	}
	return f
}

// removeFound removes the records found. The caller holds s.mu.
func (s *Store) removeFound(a *account, f *found) {
	for _, r := range f.responses {
		s.remove(r)
	}
	for _, sig := range f.signatures {
		s.signed.remove(sig.ID)
		a.campaigns.rows[sig.CampaignID].responses.rows[sig.ResponseID].signatures.remove(sig.ID)
	}
	for _, e := range f.events {
		s.forget(a, e)
	}
	a.events = slices.DeleteFunc(a.events, func(e *event) bool { return s.events[e.ID] == nil })
	for _, r := range f.records {
		r.Status, r.ETag, r.Location, r.Body = http.StatusGone, "", "", nil
	}
}

// erased counts the records found.
func (f *found) erased() formsvc.Erased {
	var out formsvc.Erased
	out.Responses, out.Signatures, out.Events = len(f.responses), len(f.signatures), len(f.events)
	out.Notices, out.Answers = len(f.notices), len(f.records)
	for _, r := range f.responses {
		out.FileIDs = append(out.FileIDs, r.files.ids...)
		out.Files += len(r.files.ids)
		out.Comments += len(r.comments.ids)
		out.Signatures += len(r.signatures.ids)
	}
	slices.Sort(out.FileIDs)
	for _, list := range f.deliveries {
		out.Deliveries += len(list)
		for _, d := range list {
			out.Attempts += len(d.Log)
		}
	}
	return out
}
