package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/formsvc/toolkit/formsvc"
)

// Erase implements [formsvc.Store].
func (s *Store) Erase(ctx context.Context, q formsvc.EraseQuery) (formsvc.Erased, error) {
	return locked(ctx, s, func() (out formsvc.Erased, err error) {
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
			if _, err := s.response(key); err == nil && key.AccountID == a.ID {
				about[key.ID] = true
			}
		}
		raise := slices.DeleteFunc(slices.Clone(q.Raise), func(e formsvc.Event) bool { return !about[e.ResponseID] || e.AccountID != a.ID })
		if err := s.checkEvents(raise); err != nil {
			return out, err
		}
		for _, key := range q.Responses {
			if r, err := s.response(key); err == nil && key.AccountID == a.ID {
				out.FileIDs = append(out.FileIDs, s.remove(r)...)
				replies[key.ID] = true
				out.Responses++
			}
		}
		slices.Sort(out.FileIDs)
		out.Signatures = pruneTable(&s.signed, len(q.Signatures), func(sig *formsvc.Signature) bool {
			return sig.AccountID == a.ID && slices.Contains(q.Signatures, sig.ID)
		})
		a.events = slices.DeleteFunc(a.events, func(e *event) bool {
			if !about[e.ResponseID] && !slices.Contains(q.Events, e.ID) {
				return false
			}
			s.forget(e)
			out.Events++
			return true
		})
		pruneTable(&s.members, len(q.Members), func(m *formsvc.Member) bool { return m.AccountID == a.ID && slices.Contains(q.Members, m.ID) })
		for _, c := range s.comments.rows {
			if c.AccountID == a.ID && slices.Contains(q.Authors, c.Author) {
				c.Author = ""
			}
		}
		for key, r := range s.records {
			if r.AccountID != a.ID {
				continue
			}
			if replies[r.ResponseID] && !s.unchanged(r) {
				r.Result, r.Response = nil, nil
			}
			if q.Refusals && r.ResponseID == "" && r.Refused {
				delete(s.records, key)
			}
		}
		s.raise(raise)
		return out, nil
	})
}

// DeleteAccount implements [formsvc.Store]. It removes an account without campaigns at once.
func (s *Store) DeleteAccount(ctx context.Context, account formsvc.ID, _ int) (formsvc.Erased, error) {
	return locked(ctx, s, func() (out formsvc.Erased, err error) {
		a, err := s.account(account)
		if err != nil {
			return out, err
		}
		maps.DeleteFunc(s.quota, func(w quotaWindow, _ int) bool {
			key := s.keys.rows[w.subject]
			return w.subject == a.ID || key != nil && key.AccountID == a.ID
		})
		pruneTable(&s.keys, len(s.keys.ids), func(k *formsvc.Key) bool { return k.AccountID == a.ID })
		pruneTable(&s.endpoints, len(s.endpoints.ids), func(e *endpoint) bool { return e.AccountID == a.ID })
		pruneTable(&s.links, len(s.links.ids), func(l *formsvc.Link) bool { return l.AccountID == a.ID })
		pruneTable(&s.sessions, len(s.sessions.ids), func(x *formsvc.Session) bool { return x.AccountID == a.ID })
		pruneTable(&s.members, len(s.members.ids), func(m *formsvc.Member) bool { return m.AccountID == a.ID })
		if s.campaigns.count(func(c *campaign) bool { return c.AccountID == a.ID }) > 0 {
			return out, nil
		}
		pruneTable(&s.notices, len(s.notices.ids), func(n *notice) bool { return n.AccountID == a.ID })
		pruneTable(&s.audit, len(s.audit.ids), func(e *formsvc.AuditEntry) bool { return e.AccountID == a.ID })
		for _, e := range a.events {
			delete(s.events, e.ID)
		}
		maps.DeleteFunc(s.records, func(_ recordKey, r *formsvc.IdempotencyRecord) bool { return r.AccountID == a.ID })
		s.accounts.remove(a.ID)
		return formsvc.Erased{Events: len(a.events), Account: true}, nil
	})
}
