package formsvc_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// A watchedStore counts calls, and runs functions before and after them.
type watchedStore struct {
	formsvc.Store
	before func(method string, call int) error // call is 1 for the first call; the call returns its error; may be nil
	after  func(method string) error           // returns the error of a call after its effect; may be nil
	alter  func(*formsvc.File)                 // changes returned files of all accounts; may be nil
	twice  bool                                // calls decide twice, as a store may

	mu    sync.Mutex
	calls map[string]int
	seen  formsvc.Cursor // of the last take
	pages []int          // numbers of responses on the pages that were read
	large int            // the largest number of records that one call of Erase named
	last  formsvc.EraseQuery
}

// disturb sets the function that runs before calls, and resets the counters.
func (s *watchedStore) disturb(before func(method string, call int) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.before = nil, before
}

func (s *watchedStore) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// errNothing makes a read find nothing.
var errNothing = errors.New("nothing")

// watched makes a call of a method.
func watched[T any](s *watchedStore, method string, call func() (T, error)) (result T, err error) {
	s.mu.Lock()
	if s.calls == nil {
		s.calls = make(map[string]int)
	}
	s.calls[method]++
	n, before, after := s.calls[method], s.before, s.after
	s.mu.Unlock()
	if before != nil {
		if err = before(method, n); err != nil {
			return result, err
		}
	}
	if result, err = call(); err == nil && after != nil {
		err = after(method)
	}
	return result, err
}

func (s *watchedStore) wrote(method string, call func() error) error {
	_, err := watched(s, method, func() (bool, error) { return true, call() })
	return err
}

// take returns the events since the last take.
func (s *watchedStore) take() (events []formsvc.Event) {
	q := formsvc.EventQuery{After: s.seen, Limit: formsvc.MaxLimit, MaxBytes: 1 << 30}
	for more := true; more; {
		page, err := s.Store.AllEvents(context.Background(), q)
		if err != nil {
			panic(err)
		}
		events, more, q.After = append(events, page.Items...), page.More, page.Next
	}
	s.seen = q.After
	return events
}

func (s *watchedStore) AccountByName(ctx context.Context, name string) (formsvc.Account, error) {
	return watched(s, "AccountByName", func() (formsvc.Account, error) { return s.Store.AccountByName(ctx, name) })
}

func (s *watchedStore) KeyByHash(ctx context.Context, hash [sha256.Size]byte) (formsvc.Key, error) {
	return watched(s, "KeyByHash", func() (formsvc.Key, error) { return s.Store.KeyByHash(ctx, hash) })
}

func (s *watchedStore) Campaign(ctx context.Context, key formsvc.CampaignKey) (formsvc.Campaign, error) {
	return watched(s, "Campaign", func() (formsvc.Campaign, error) { return s.Store.Campaign(ctx, key) })
}

func (s *watchedStore) Campaigns(ctx context.Context, q formsvc.CampaignQuery) (formsvc.Page[formsvc.Campaign], error) {
	return watched(s, "Campaigns", func() (formsvc.Page[formsvc.Campaign], error) { return s.Store.Campaigns(ctx, q) })
}

func (s *watchedStore) SignaturesBy(
	ctx context.Context, account formsvc.ID, email string, page formsvc.PageQuery,
) (formsvc.Page[formsvc.Signature], error) {
	return watched(s, "SignaturesBy", func() (formsvc.Page[formsvc.Signature], error) {
		return s.Store.SignaturesBy(ctx, account, email, page)
	})
}

func (s *watchedStore) Erase(ctx context.Context, q formsvc.EraseQuery) (formsvc.Erased, error) {
	s.large, s.last = max(s.large, len(q.Responses)+len(q.Signatures)+len(q.Events)), q
	return watched(s, "Erase", func() (formsvc.Erased, error) { return s.Store.Erase(ctx, q) })
}

func (s *watchedStore) DeleteAccount(ctx context.Context, account formsvc.ID, limit int) (formsvc.Erased, error) {
	return watched(s, "DeleteAccount", func() (formsvc.Erased, error) { return s.Store.DeleteAccount(ctx, account, limit) })
}

func (s *watchedStore) AddQuota(ctx context.Context, list []formsvc.QuotaCount) ([]int, error) {
	return watched(s, "AddQuota", func() ([]int, error) { return s.Store.AddQuota(ctx, list) })
}

func (s *watchedStore) SessionByHash(ctx context.Context, hash [sha256.Size]byte) (formsvc.Session, error) {
	return watched(s, "SessionByHash", func() (formsvc.Session, error) { return s.Store.SessionByHash(ctx, hash) })
}

func (s *watchedStore) Events(ctx context.Context, q formsvc.EventQuery) (formsvc.EventPage, error) {
	page, err := watched(s, "Events", func() (formsvc.EventPage, error) { return s.Store.Events(ctx, q) })
	if errors.Is(err, errNothing) {
		page, err = formsvc.EventPage{Next: q.After}, nil
	}
	return page, err
}

func (s *watchedStore) AllEvents(ctx context.Context, q formsvc.EventQuery) (formsvc.EventPage, error) {
	return watched(s, "AllEvents", func() (formsvc.EventPage, error) { return s.Store.AllEvents(ctx, q) })
}

func (s *watchedStore) QuotaUse(ctx context.Context, subject formsvc.ID, since time.Time) ([]formsvc.QuotaUse, error) {
	return watched(s, "QuotaUse", func() ([]formsvc.QuotaUse, error) { return s.Store.QuotaUse(ctx, subject, since) })
}

func (s *watchedStore) PruneEvents(ctx context.Context, before time.Time, limit int) (int, error) {
	return watched(s, "PruneEvents", func() (int, error) { return s.Store.PruneEvents(ctx, before, limit) })
}

func (s *watchedStore) Notify() {
	_ = s.wrote("Notify", func() error {
		s.Store.Notify()
		return nil
	})
}

func (s *watchedStore) Commit(ctx context.Context, change formsvc.Change) error {
	return s.wrote("Commit", func() error { return s.Store.Commit(ctx, change) })
}

func (s *watchedStore) UseKeys(ctx context.Context, uses []formsvc.KeyUse) error {
	return s.wrote("UseKeys", func() error { return s.Store.UseKeys(ctx, uses) })
}

func (s *watchedStore) EndSession(ctx context.Context, account formsvc.ID, hash [sha256.Size]byte, change formsvc.Change) error {
	return s.wrote("EndSession", func() error { return s.Store.EndSession(ctx, account, hash, change) })
}

func (s *watchedStore) CreateResponse(ctx context.Context, r formsvc.Response, version int64, change formsvc.Change) error {
	return s.wrote("CreateResponse", func() error { return s.Store.CreateResponse(ctx, r, version, change) })
}

func (s *watchedStore) CreateFile(ctx context.Context, f formsvc.File, decide func(*formsvc.Response) (formsvc.Change, error)) error {
	return s.wrote("CreateFile", func() error { return s.Store.CreateFile(ctx, f, decide) })
}

func (s *watchedStore) CreateWebhook(
	ctx context.Context, hook formsvc.Webhook, limit int, decide func(*formsvc.Webhook, bool) (formsvc.Change, error),
) (stored formsvc.Webhook, created bool, err error) {
	err = s.wrote("CreateWebhook", func() (err error) {
		stored, created, err = s.Store.CreateWebhook(ctx, hook, limit, decide)
		return err
	})
	return stored, created, err
}

func (s *watchedStore) UpdateWebhook(
	ctx context.Context, key formsvc.WebhookKey, decide func(*formsvc.Webhook) (formsvc.Change, error),
) (formsvc.Webhook, error) {
	return watched(s, "UpdateWebhook", func() (formsvc.Webhook, error) { return s.Store.UpdateWebhook(ctx, key, decide) })
}

func (s *watchedStore) UpdateResponse(
	ctx context.Context, key formsvc.ResponseKey, decide func(*formsvc.Response) (formsvc.Change, error),
) (formsvc.Response, error) {
	return watched(s, "UpdateResponse", func() (formsvc.Response, error) {
		return s.Store.UpdateResponse(ctx, key, func(r *formsvc.Response) (formsvc.Change, error) {
			if s.twice {
				trial := *r
				if _, err := decide(&trial); err != nil {
					return formsvc.Change{}, err
				}
			}
			return decide(r)
		})
	})
}

func (s *watchedStore) RedeemLink(
	ctx context.Context, hash [sha256.Size]byte, decide func(*formsvc.Link) (formsvc.Session, formsvc.Change, error),
) (formsvc.Session, error) {
	return watched(s, "RedeemLink", func() (formsvc.Session, error) {
		return s.Store.RedeemLink(ctx, hash, func(link *formsvc.Link) (formsvc.Session, formsvc.Change, error) {
			if s.twice {
				trial := *link
				if _, _, err := decide(&trial); err != nil {
					return formsvc.Session{}, formsvc.Change{}, err
				}
			}
			return decide(link)
		})
	})
}

func (s *watchedStore) CreateSignature(
	ctx context.Context, sig formsvc.Signature, decide func(*formsvc.Response, *formsvc.Signature) (formsvc.Change, error),
) (formsvc.Signature, error) {
	return watched(s, "CreateSignature", func() (formsvc.Signature, error) {
		return s.Store.CreateSignature(ctx, sig, func(r *formsvc.Response, sig *formsvc.Signature) (formsvc.Change, error) {
			if s.twice {
				trial, given := *r, *sig
				trial.Answers = formsvc.NewAnswers(answer("other", "answers"))
				if _, err := decide(&trial, &given); err != nil {
					return formsvc.Change{}, err
				}
			}
			return decide(r, sig)
		})
	})
}

func (s *watchedStore) Deliveries(ctx context.Context, q formsvc.DeliveryQuery) (formsvc.Page[formsvc.Delivery], error) {
	method := "Deliveries"
	if !q.NoTotal {
		method = "Deliveries counted"
	}
	return watched(s, method, func() (formsvc.Page[formsvc.Delivery], error) { return s.Store.Deliveries(ctx, q) })
}

func (s *watchedStore) AllFiles(ctx context.Context, q formsvc.PageQuery) (formsvc.Page[formsvc.File], error) {
	page, err := s.Store.AllFiles(ctx, q)
	for i := range page.Items {
		if s.alter != nil {
			s.alter(&page.Items[i])
		}
	}
	return page, err
}

func (s *watchedStore) Responses(ctx context.Context, q formsvc.ResponseQuery) (formsvc.Page[formsvc.Response], error) {
	return watched(s, "Responses", func() (formsvc.Page[formsvc.Response], error) {
		page, err := s.Store.Responses(ctx, q)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pages = append(s.pages, len(page.Items))
		return page, err
	})
}

func (s *watchedStore) BarFiles(ctx context.Context, ids []formsvc.ID) ([]formsvc.ID, error) {
	return watched(s, "BarFiles", func() ([]formsvc.ID, error) { return s.Store.BarFiles(ctx, ids) })
}
