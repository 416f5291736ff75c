package storagetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A race runs concurrent calls through stores over the same data.
type race struct {
	name string
	run  func(w *world, stores []Store)
}

func races() []race {
	return []race{
		{"no update is lost", (*world).increments},
		{"limits and unique values hold", (*world).limits},
		{"each delivery is claimed once", (*world).claimedOnce},
		{"each notice is leased once", (*world).noticedOnce},
		{"each failure is in one digest", (*world).digestsOnce},
		{"readers of the feed miss nothing", (*world).followed},
		{"identifier is used or barred", (*world).fileOrBar},
		{"no file is left without a response", (*world).noStrayFiles},
		{"no response is left without a campaign", (*world).noStrayResponses},
		{"concurrent quota counts add up", (*world).addTogether},
		{"no more places are taken than there are", (*world).places},
	}
}

// race makes the call n times concurrently and returns how many succeeded. The others must fail with that error.
func (w *world) race(n int, want error, call func(i int) error) int {
	w.Helper()
	var won atomic.Int64
	together(n, func(i int) {
		switch err := call(i); {
		case err == nil:
			won.Add(1)
		case !errors.Is(err, want):
			w.Errorf("error %v, want %v", err, want)
		}
	})
	return int(won.Load())
}

// increments updates records concurrently, while responses are created: each of these is counted or stale.
func (w *world) increments(stores []Store) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	updates := map[string]func(s Store, do func(text *string, version *int64)) error{
		"account": func(s Store, do func(*string, *int64)) error {
			return errorOf(s.UpdateAccount(w.ctx, sc.account.ID, func(a *formsvc.Account) error { do(&a.Contact, new(int64)); return nil }))
		},
		"campaign": func(s Store, do func(*string, *int64)) error {
			return rewrite(w.ctx, s.UpdateCampaign, sc.campaign.Key(), none, func(c *formsvc.Campaign) { do(&c.Description, &c.Version) })
		},
		"views": func(s Store, do func(*string, *int64)) error {
			return rewrite(w.ctx, s.UpdateCampaign, sc.campaign.Key(), none, func(c *formsvc.Campaign) { do(&c.Views[0].Query, new(int64)) })
		},
		"webhook": func(s Store, do func(*string, *int64)) error {
			return rewrite(w.ctx, s.UpdateWebhook, webhookKey(&sc.hook), none, func(h *formsvc.Webhook) { do(&h.Previous, &h.Version) })
		},
		"response": func(s Store, do func(*string, *int64)) error {
			return errorOf(s.UpdateResponse(w.ctx, r.Key(), func(r *formsvc.Response) (formsvc.Change, error) {
				do(&r.User.FirstName, &r.Version)
				e := w.newEvent(r)
				e.Payload = []byte(r.User.FirstName)
				return formsvc.Change{Events: []formsvc.Event{e}}, nil
			}))
		},
	}
	var created atomic.Int64
	together(8, func(i int) {
		s := stores[i%len(stores)]
		for range 25 {
			c, err := s.Campaign(w.ctx, sc.campaign.Key())
			w.check("Campaign", err)
			if err = s.CreateResponse(w.ctx, w.newResponse(&sc.campaign), c.Version, none); err == nil {
				created.Add(1)
			} else {
				w.wantError("CreateResponse", err, formsvc.ErrStale)
			}
			for what, update := range updates {
				w.check(what, update(s, func(text *string, version *int64) {
					n, _ := strconv.Atoi(*text)
					runtime.Gosched() // a store that interleaves here loses updates
					*text = strconv.Itoa(n + 1)
					*version++
				}))
			}
		}
	})
	for _, s := range stores {
		for what, update := range updates {
			w.check(what, update(s, func(text *string, version *int64) {
				if *text != "200" || *version != 0 && *version != 201 {
					w.Errorf("after 200 increments a %s says %q and has version %d", what, *text, *version)
				}
			}))
		}
		c, err := s.Campaign(w.ctx, sc.campaign.Key())
		if w.must("Campaign", err); c.ResponseCount != 1+created.Load() {
			w.Errorf("%d responses are counted, and %d were created", c.ResponseCount, 1+created.Load())
		}
	}
	events := must(w.store.EventsAbout(w.ctx, r.Key(), formsvc.MaxLimit))(w, "EventsAbout")
	for i, e := range events[1:] { // one of each increment, that of the function's last run
		if len(events) != 201 || string(e.Payload) != strconv.Itoa(i+1) {
			w.Fatalf("event %d of %d is of increment %s", i+1, len(events)-1, e.Payload)
		}
	}
}

// limits adds concurrently what only some calls may add.
func (w *world) limits(stores []Store) {
	const limit = 5
	a := w.addAccount()
	c := w.addCampaign(a.ID)
	sc := &scene{a, c, w.addWebhook(a.ID)}
	taken, name, hash, url := w.newResponse(&c).Reference, w.newAccount().Name, keyHash(a.ID), w.newWebhook(a.ID).URL
	limited := formsvc.Change{Limit: limit}
	b := w.addAccount()
	full := []formsvc.Campaign{w.addCampaign(b.ID), w.addCampaign(b.ID)} // up to the limit together
	of := w.addAccount().ID
	admins := []formsvc.Member{w.addMember(of), w.addMember(of)}
	var next, same, responses atomic.Int64 // webhooks of one subscription, and responses, that were created
	type row struct {
		what string
		want int
		err  error
		call func(s Store) error
	}
	rows := []row{
		{"webhooks", limit - 1, formsvc.ErrLimit, func(s Store) error {
			_, _, err := s.CreateWebhook(w.ctx, w.newWebhook(a.ID), limit, nil)
			return err
		}},
		{"keys", limit, formsvc.ErrLimit, func(s Store) error { return s.CreateKey(w.ctx, w.newKey(a.ID), limited) }},
		{"campaigns", limit - 1, formsvc.ErrLimit, func(s Store) error { return s.CreateCampaign(w.ctx, w.newCampaign(a.ID), limited) }},
		{"responses", limit, formsvc.ErrLimit, func(s Store) error {
			r := w.newResponse(&c)
			w.check("a neighbour", s.CreateResponse(w.ctx, r, 1, formsvc.Change{Events: []formsvc.Event{w.newEvent(&r)}}))
			responses.Add(1)
			return s.CreateResponse(w.ctx, w.newResponse(&full[rand.IntN(len(full))]), 1, limited)
		}},
		{"references", 1, formsvc.ErrConflict, func(s Store) error {
			r := w.newResponse(&c)
			r.Reference = taken
			return s.CreateResponse(w.ctx, r, 1, formsvc.Change{Events: []formsvc.Event{w.newEvent(&r)}})
		}},
		{"names", 1, formsvc.ErrConflict, func(s Store) error {
			other := w.newAccount()
			other.Name = name
			return s.CreateAccount(w.ctx, other, nil, none)
		}},
		{"members", limit, formsvc.ErrLimit, func(s Store) error { return s.CreateMember(w.ctx, w.newMember(a.ID), limited) }},
		{"addresses", 1, formsvc.ErrConflict, func(s Store) error {
			m := w.newMember(b.ID)
			m.Email = []string{"eve@example.com", "EVE@example.com"}[rand.IntN(2)]
			return s.CreateMember(w.ctx, m, none)
		}},
		{"admins", len(admins) - 1, formsvc.ErrLastAdmin, func(s Store) error {
			return errorOf(s.UpdateMember(w.ctx, admins[int(next.Add(1))%len(admins)].Key(), func(m *formsvc.Member) (formsvc.Change, error) {
				if !m.RemovedAt.IsZero() {
					return none, formsvc.ErrLastAdmin
				}
				m.RemovedAt, m.Version = nextDay(), m.Version+1
				return none, nil
			}))
		}},
		{"hashes", 1, formsvc.ErrConflict, func(s Store) error {
			key := w.newKey(a.ID)
			key.Hash = hash
			return s.CreateKey(w.ctx, key, none)
		}},
		{"subscriptions", 24, nil, func(s Store) error {
			h := w.newWebhook(a.ID)
			h.URL = url
			_, created, err := s.CreateWebhook(w.ctx, h, formsvc.MaxWebhooks, nil)
			if created {
				same.Add(1)
			}
			return err
		}},
	}
	for round := range 4 {
		link := w.newLink(a.ID)
		w.must("CreateLink", w.store.CreateLink(w.ctx, link, none))
		rows = append(rows, row{"calls with one link", 1, formsvc.ErrNotFound, func(s Store) error { return w.redeem(s, &link, w.newSession(a.ID)) }})
		w.addResponse(&c)
		claim := w.take(nextDay(), share(&sc.hook, 1))[0]
		responses.Add(1)
		rows = append(rows, row{"outcomes of one claim", 1, formsvc.ErrStale, func(s Store) error {
			accepted, err := s.Finish(w.ctx, []delivery.Outcome{outcome(&claim, delivery.Failed, nextDay())})
			if err == nil && !accepted[0] {
				err = formsvc.ErrStale
			}
			return err
		}})
		key := fmt.Sprint("round ", round)
		rows = append(rows, row{"creates with one idempotency key", 1, formsvc.ErrRepeated, func(s Store) error {
			r := w.newResponse(&c)
			err := s.CreateResponse(w.ctx, r, 1, formsvc.Change{Idempotency: w.newReply(&r, key), Events: []formsvc.Event{w.newEvent(&r)}})
			if err == nil {
				responses.Add(1)
			}
			return err
		}}, row{"other calls with one idempotency key", 1, formsvc.ErrRepeated, func(s Store) error {
			change := formsvc.Change{Idempotency: new(w.newRecord(a.ID, key+" of others"))}
			switch rand.IntN(3) {
			case 1:
				return s.CreateAccount(w.ctx, w.newAccount(), nil, change)
			case 2:
				return s.CreateCampaign(w.ctx, w.newCampaign(a.ID), change)
			}
			return s.Commit(w.ctx, change)
		}})
	}
	for _, x := range rows {
		if won := w.race(24, x.err, func(i int) error { return x.call(stores[i%len(stores)]) }); won != x.want {
			w.Errorf("%s: %d of 24 calls succeeded, want %d", x.what, won, x.want)
		}
	}
	if n := same.Load(); n != 1 {
		w.Errorf("%d webhooks of one subscription", n)
	}
	w.wantCount(sc, 1+int(responses.Load())) // one with the reference
	for _, d := range w.deliveries(&sc.hook) {
		if d.Attempts > 1 || len(d.Log) != d.Attempts {
			w.Errorf("%d attempts, want at most 1", d.Attempts)
		}
	}
}

// fileOrBar wants identifiers for files while two calls bar them. Each identifier must end as exactly one of the two, and
// the callers must be told so.
func (w *world) fileOrBar(stores []Store) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	for range 10 {
		const n = 12
		var (
			ids     []formsvc.ID
			files   []formsvc.File
			events  []formsvc.Event
			created [n]error
			barred  [2][]formsvc.ID
		)
		for range n {
			files, events = append(files, w.newFile(&r)), append(events, w.newEvent(&r))
			ids = append(ids, files[len(files)-1].ID)
		}
		together(n+len(barred), func(i int) {
			store := stores[i%len(stores)]
			if i < n {
				created[i] = store.CreateFile(w.ctx, files[i], deciding[*formsvc.Response](formsvc.Change{Events: events[i : i+1]}))
				return
			}
			asked := slices.Clone(ids)
			if i > n { // in another order, to provoke deadlocks
				slices.Reverse(asked)
			}
			var err error
			barred[i-n], err = store.BarFiles(w.ctx, asked)
			w.check("BarFiles", err)
		})
		unknown := must(w.store.UnknownFiles(w.ctx, ids))(w, "UnknownFiles")
		for i, id := range ids {
			free := slices.Contains(unknown, id)
			if free == (created[i] == nil) || free != slices.Contains(barred[0], id) || free != slices.Contains(barred[1], id) {
				w.Errorf("CreateFile returned %v, BarFiles %v; the file exists: %t", created[i], barred, !free)
			}
			if free {
				w.wantError("CreateFile of what was barred", created[i], formsvc.ErrConflict)
				w.noEvents("CreateFile of what was barred", events[i])
			}
		}
	}
}

// noStrayFiles deletes responses while they get files.
func (w *world) noStrayFiles(stores []Store) {
	sc := w.addScene()
	const uploads = 12
	for round := range 10 {
		r, _ := w.addResponse(&sc.campaign)
		var list [uploads]formsvc.File
		var created [uploads]error
		for i := range list {
			list[i] = w.newFile(&r)
		}
		var deleted []formsvc.ID
		together(uploads+1, func(i int) {
			store := stores[(i+round)%len(stores)]
			if i < uploads {
				created[i] = store.CreateFile(w.ctx, list[i], deciding[*formsvc.Response](none))
				return
			}
			var err error
			deleted, err = store.DeleteResponse(w.ctx, r.Key(), nil)
			w.check("DeleteResponse", err)
		})
		for i := range list {
			if slices.Contains(deleted, list[i].ID) != (created[i] == nil) {
				w.Errorf("CreateFile returned %v, and DeleteResponse named %v", created[i], deleted)
			}
			if created[i] != nil {
				w.wantError("CreateFile beside DeleteResponse", created[i], formsvc.ErrNotFound)
			}
		}
	}
	if page, err := w.store.AllFiles(w.ctx, formsvc.PageQuery{}); err != nil || len(page.Items) != 0 {
		w.Errorf("%d files have no response (%v)", len(page.Items), err)
	}
}

// noStrayResponses deletes campaigns while they get responses, some of them not the first ones.
func (w *world) noStrayResponses(stores []Store) {
	const creators = 8
	for round := range 16 {
		c := w.addScene().campaign
		if round%2 > 0 {
			r, _ := w.addResponse(&c)
			w.must("DeleteResponse", errorOf(w.store.DeleteResponse(w.ctx, r.Key(), nil)))
		}
		var list [creators]formsvc.Response
		for i := range list {
			list[i] = w.newResponse(&c)
		}
		var deleted error
		created := w.race(creators+1, formsvc.ErrNotFound, func(i int) error {
			store := stores[(i+round)%len(stores)]
			if i < creators {
				return store.CreateResponse(w.ctx, list[i], c.Version, none)
			}
			deleted = store.DeleteCampaign(w.ctx, c.Key(), nil)
			return formsvc.ErrNotFound
		})
		if errors.Is(deleted, formsvc.ErrCampaignNotEmpty) {
			w.wantError("DeleteCampaign", deleted, formsvc.ErrConflict)
			deleted = nil
			if created < 1 {
				w.Errorf("a campaign without responses was not deleted")
			}
		} else if created > 0 {
			w.Errorf("%d responses were created in a campaign that was deleted", created)
		}
		w.check("DeleteCampaign", deleted)
	}
}
