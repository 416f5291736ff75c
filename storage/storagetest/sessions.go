package storagetest

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func sessionTests() []test {
	return []test{
		{"every field is kept", testSessionMembers},
		{"link signs in once", testLinkOnce},
		{"one of many concurrent redemptions wins", testRedeemRace},
		{"decide sets the session", testRedeemDecides},
		{"taken identifiers and hashes are refused", testSessionConflicts},
		{"unknown account is not found", testLinkUnknown},
		{"one session ends", testEndSession},
		{"all sessions end", testEndSessions},
		{"no session is left beside redemptions", testEndBesideRedeem},
		{"sessions commit with their change", testSessionUnits},
		{"expired sessions and links are pruned", testPruneSessions},
	}
}

func (w *world) newLink(account formsvc.ID) formsvc.Link {
	id, at := w.next()
	return formsvc.Link{
		ID: id, AccountID: account, Hash: keyHash("link " + id), CreatedAt: at, ExpiresAt: at.Add(formsvc.LinkTTL),
	}
}

func (w *world) newSession(account formsvc.ID) formsvc.Session {
	id, at := w.next()
	return formsvc.Session{
		ID: id, AccountID: account, Hash: keyHash("session " + id), CreatedAt: at, ExpiresAt: at.Add(formsvc.SessionTTL),
	}
}

func (w *world) addLink(account formsvc.ID) formsvc.Link {
	w.Helper()
	link := w.newLink(account)
	w.must("CreateLink", w.store.CreateLink(w.ctx, link, formsvc.Change{}))
	return link
}

func (w *world) addSession(account formsvc.ID) formsvc.Session {
	w.Helper()
	link, session := w.addLink(account), w.newSession(account)
	_, err := w.redeem(&link, session)
	w.must("RedeemLink", err)
	return session
}

// redeem redeems a link for a session.
func (w *world) redeem(link *formsvc.Link, session formsvc.Session) (formsvc.Session, error) {
	return w.store.RedeemLink(w.ctx, link.Hash, func(*formsvc.Link) (formsvc.Session, formsvc.Change, error) {
		return session, formsvc.Change{}, nil
	})
}

// wantSessions fails the test unless these sessions exist.
func (w *world) wantSessions(what string, sessions ...formsvc.Session) {
	w.Helper()
	for _, want := range sessions {
		got, err := w.store.SessionByHash(w.ctx, want.Hash)
		w.must("SessionByHash after "+what, err)
		w.same("session after "+what, got, want)
	}
}

// wantNoSessions fails the test if one of the sessions exists.
func (w *world) wantNoSessions(what string, sessions ...formsvc.Session) {
	w.Helper()
	for _, gone := range sessions {
		_, err := w.store.SessionByHash(w.ctx, gone.Hash)
		w.wantError("SessionByHash after "+what, err, formsvc.ErrNotFound)
	}
}

// wantLinks fails the test unless each link could be redeemed and decide gets it. It rolls back.
func (w *world) wantLinks(what string, links ...formsvc.Link) {
	w.Helper()
	stop := errors.New("only looking")
	for _, want := range links {
		_, err := w.store.RedeemLink(w.ctx, want.Hash, func(got *formsvc.Link) (formsvc.Session, formsvc.Change, error) {
			w.same("link after "+what, *got, want)
			return formsvc.Session{}, formsvc.Change{}, stop
		})
		w.wantError("RedeemLink after "+what, err, stop)
	}
}

// wantNoLinks fails the test if one of the links can be redeemed.
func (w *world) wantNoLinks(what string, links ...formsvc.Link) {
	w.Helper()
	for _, gone := range links {
		_, err := w.redeem(&gone, w.newSession(gone.AccountID))
		w.wantError("RedeemLink after "+what, err, formsvc.ErrNotFound)
	}
}

func testSessionMembers(w *world) {
	mine, other := w.addAccount(), w.addAccount()
	fine := time.Date(2026, 7, 1, 1, 2, 3, 999_999_999, time.FixedZone("east", 5*3600))
	link := w.newLink(mine.ID)
	link.CreatedAt, link.ExpiresAt = fine, fine.Add(time.Hour)
	w.must("CreateLink", w.store.CreateLink(w.ctx, link, formsvc.Change{}))
	cut := time.Date(2026, 6, 30, 20, 2, 3, 999_999_000, time.UTC)
	link.CreatedAt, link.ExpiresAt = cut, cut.Add(time.Hour)
	w.wantLinks("CreateLink", link)

	// The account comes from the link, not from the function.
	session := w.newSession(other.ID)
	session.CreatedAt, session.ExpiresAt = fine, fine.Add(time.Hour)
	got, err := w.redeem(&link, session)
	w.must("RedeemLink", err)
	session.AccountID, session.CreatedAt, session.ExpiresAt = mine.ID, cut, cut.Add(time.Hour)
	w.same("session as redeemed", got, session)
	w.wantSessions("RedeemLink", session)
	theirs := w.addSession(other.ID)
	w.wantSessions("RedeemLink of another account", session, theirs)
}

func testLinkOnce(w *world) {
	a := w.addAccount()
	link, second := w.addLink(a.ID), w.addLink(a.ID)
	session := w.newSession(a.ID)
	_, err := w.redeem(&link, session)
	w.must("RedeemLink", err)
	w.wantNoLinks("RedeemLink", link)
	w.wantLinks("RedeemLink of another", second)
	w.wantSessions("RedeemLink, again", session)
	w.wantNoLinks("nothing", w.newLink(a.ID))
	// The hash of a session isn't that of a link, nor the other way round.
	_, err = w.redeem(&formsvc.Link{Hash: session.Hash}, w.newSession(a.ID))
	w.wantError("RedeemLink with the hash of a session", err, formsvc.ErrNotFound)
	_, err = w.store.SessionByHash(w.ctx, second.Hash)
	w.wantError("SessionByHash with the hash of a link", err, formsvc.ErrNotFound)
	w.wantError("EndSession with the hash of a link", endSession(w.ctx, w.store, a.ID, second.Hash), formsvc.ErrNotFound)
}

func testRedeemRace(w *world) { w.redeemTogether([]Store{w.store}) }

func testHandlesRedeem(w *world) { w.redeemTogether([]Store{w.store, w.reopen(w.T, w.store)}) }

// redeemTogether redeems the same link concurrently.
func (w *world) redeemTogether(stores []Store) {
	w.Helper()
	a := w.addAccount()
	var turn atomic.Int64
	for range 10 {
		link := w.addLink(a.ID)
		sessions := make([]formsvc.Session, 8)
		for i := range sessions {
			sessions[i] = w.newSession(a.ID)
		}
		var next, redeemed atomic.Int64
		if won := w.race(len(sessions), formsvc.ErrNotFound, func() error {
			mine := next.Add(1) - 1
			_, err := stores[turn.Add(1)%int64(len(stores))].RedeemLink(w.ctx, link.Hash,
				func(*formsvc.Link) (formsvc.Session, formsvc.Change, error) {
					return sessions[mine], formsvc.Change{}, nil
				})
			if err == nil {
				redeemed.Store(mine)
			}
			return err
		}); won != 1 {
			w.Errorf("a link was redeemed %d times", won)
		}
		for i, session := range sessions {
			if int64(i) == redeemed.Load() {
				w.wantSessions("RedeemLink by many", session)
			} else {
				w.wantNoSessions("RedeemLink by many", session)
			}
		}
	}
}

func testRedeemDecides(w *world) {
	a := w.addAccount()
	link, session := w.addLink(a.ID), w.newSession(a.ID)
	stop := errors.New("too late")
	_, err := w.store.RedeemLink(w.ctx, link.Hash, func(link *formsvc.Link) (formsvc.Session, formsvc.Change, error) {
		*link = formsvc.Link{}
		return session, formsvc.Change{}, stop
	})
	w.wantError("RedeemLink that is decided against", err, stop)
	w.wantNoSessions("RedeemLink that is decided against", session)
	w.wantLinks("RedeemLink that is decided against", link)
	for what, id := range map[string]formsvc.ID{"a NUL": session.ID[:35] + "\x00", "a bad byte": session.ID[:35] + "\xff"} {
		bad := session
		bad.ID = id
		_, err := w.redeem(&link, bad)
		w.wantError("RedeemLink for an ID with "+what, err, formsvc.ErrInvalid)
		fresh := w.newLink(a.ID)
		fresh.ID = id
		w.wantError("CreateLink with "+what, w.store.CreateLink(w.ctx, fresh, formsvc.Change{}), formsvc.ErrInvalid)
		w.wantNoLinks("CreateLink with "+what, fresh)
	}
	w.wantNoSessions("RedeemLink for a bad ID", session)
	w.wantLinks("RedeemLink for a bad ID", link)
	_, err = w.redeem(&link, session)
	w.must("RedeemLink", err)
}

func testSessionConflicts(w *world) {
	a, b := w.addAccount(), w.addAccount()
	taken, held := w.addLink(a.ID), w.addSession(a.ID)
	for _, account := range []formsvc.ID{a.ID, b.ID} {
		link := w.newLink(account)
		link.Hash = taken.Hash
		w.wantError("CreateLink with a taken hash", w.store.CreateLink(w.ctx, link, formsvc.Change{}), formsvc.ErrConflict)
		link = w.newLink(account)
		link.ID = taken.ID
		w.wantError("CreateLink with a taken ID", w.store.CreateLink(w.ctx, link, formsvc.Change{}), formsvc.ErrConflict)
		w.wantNoLinks("CreateLink with a taken ID", link)

		link = w.addLink(account)
		session := w.newSession(account)
		session.Hash = held.Hash
		_, err := w.redeem(&link, session)
		w.wantError("RedeemLink for a taken hash", err, formsvc.ErrConflict)
		session = w.newSession(account)
		session.ID = held.ID
		_, err = w.redeem(&link, session)
		w.wantError("RedeemLink for a taken ID", err, formsvc.ErrConflict)
		w.wantNoSessions("RedeemLink for a taken ID", session)
		w.wantLinks("RedeemLink for what is taken", link)
	}
	w.wantLinks("conflicts", taken)
	w.wantSessions("conflicts", held)
}

func testLinkUnknown(w *world) {
	a := w.addAccount()
	link, session := w.addLink(a.ID), w.addSession(a.ID)
	stray := w.newLink(w.nextID())
	w.wantError("CreateLink of no account", w.store.CreateLink(w.ctx, stray, formsvc.Change{}), formsvc.ErrNotFound)
	w.wantNoLinks("CreateLink of no account", stray)
	w.wantError("EndSessions of no account", w.store.EndSessions(w.ctx, formsvc.SessionQuery{AccountID: w.nextID()}, formsvc.Change{}), formsvc.ErrNotFound)
	w.wantLinks("EndSessions of no account", link)
	w.wantSessions("EndSessions of no account", session)
}

func testEndSession(w *world) {
	a := w.addAccount()
	session, other := w.addSession(a.ID), w.addSession(a.ID)
	link := w.addLink(a.ID)
	w.wantError("EndSession of another account", endSession(w.ctx, w.store, w.addAccount().ID, session.Hash), formsvc.ErrNotFound)
	w.wantSessions("EndSession of another account", session)
	for _, ended := range []formsvc.Session{session, w.addSession(a.ID), w.addSession(a.ID), w.addSession(a.ID), w.addSession(a.ID)} {
		if won := w.race(8, formsvc.ErrNotFound, func() error { return endSession(w.ctx, w.store, a.ID, ended.Hash) }); won != 1 {
			w.Errorf("a session was ended %d times", won)
		}
	}
	w.wantNoSessions("EndSession", session)
	w.wantSessions("EndSession of another", other)
	w.wantLinks("EndSession", link)
}

func testEndSessions(w *world) {
	a, b := w.addAccount(), w.addAccount()
	sessions := []formsvc.Session{w.addSession(a.ID), w.addSession(a.ID)}
	links := []formsvc.Link{w.addLink(a.ID), w.addLink(a.ID)}
	theirs, link := w.addSession(b.ID), w.addLink(b.ID)
	for range 2 { // the second time no session is left to end
		w.must("EndSessions", w.store.EndSessions(w.ctx, formsvc.SessionQuery{AccountID: a.ID}, formsvc.Change{}))
		w.wantNoSessions("EndSessions", sessions...)
		w.wantNoLinks("EndSessions", links...)
		w.wantSessions("EndSessions of another account", theirs)
		w.wantLinks("EndSessions of another account", link)
	}
	w.wantSessions("EndSessions before", w.addSession(a.ID))
}

// testEndBesideRedeem redeems links while all sessions end. No session is left, whichever is first.
func testEndBesideRedeem(w *world) {
	a := w.addAccount()
	for range 20 {
		links, sessions := make([]formsvc.Link, 4), make([]formsvc.Session, 4)
		for i := range links {
			links[i], sessions[i] = w.addLink(a.ID), w.newSession(a.ID)
		}
		w.together(len(links)+1, func(i int) {
			if i == len(links) {
				w.check("EndSessions", w.store.EndSessions(w.ctx, formsvc.SessionQuery{AccountID: a.ID}, formsvc.Change{}))
			} else if _, err := w.redeem(&links[i], sessions[i]); err != nil && !errors.Is(err, formsvc.ErrNotFound) {
				w.Errorf("RedeemLink beside EndSessions: %v", err)
			}
		})
		w.wantNoSessions("EndSessions beside RedeemLink", sessions...)
		w.wantNoLinks("EndSessions beside RedeemLink", links...)
	}
}

// testSessionUnits runs transactions that succeed and fail: their changes exist exactly if they succeed.
func testSessionUnits(w *world) {
	sc := w.addScene()
	account := sc.account.ID
	link, session, link2 := w.addLink(account), w.addSession(account), w.addLink(account)
	taken := w.newRecord(account, "taken")
	w.must("Remember", remember(w.ctx, w.store, *taken))
	redeem := func(hash [32]byte, change formsvc.Change) error {
		_, err := w.store.RedeemLink(w.ctx, hash, func(*formsvc.Link) (formsvc.Session, formsvc.Change, error) {
			return w.newSession(account), change, nil
		})
		return err
	}
	end := func(hash [32]byte, change formsvc.Change) error {
		return w.store.EndSessions(w.ctx, formsvc.SessionQuery{AccountID: account, Hash: hash}, change)
	}
	var want []formsvc.AuditEntry
	events := 0
	for _, c := range []struct {
		what string
		err  error
		do   func(change formsvc.Change) error
	}{
		{"CreateLink", nil, func(change formsvc.Change) error { return w.store.CreateLink(w.ctx, w.newLink(account), change) }},
		{"CreateLink, taken", formsvc.ErrConflict, func(change formsvc.Change) error { return w.store.CreateLink(w.ctx, link, change) }},
		{"RedeemLink, unknown", formsvc.ErrNotFound, func(change formsvc.Change) error { return redeem(w.newLink(account).Hash, change) }},
		{"RedeemLink, repeated", formsvc.ErrRepeated, func(change formsvc.Change) error {
			change.Idempotency = taken
			return redeem(link.Hash, change)
		}},
		{"RedeemLink", nil, func(change formsvc.Change) error { return redeem(link.Hash, change) }},
		{"EndSession, repeated", formsvc.ErrRepeated, func(change formsvc.Change) error {
			change.Idempotency = taken
			return end(session.Hash, change)
		}},
		{"EndSession", nil, func(change formsvc.Change) error { return end(session.Hash, change) }},
		{"EndSession, again", formsvc.ErrNotFound, func(change formsvc.Change) error { return end(session.Hash, change) }},
		{"EndSessions, repeated", formsvc.ErrRepeated, func(change formsvc.Change) error {
			change.Idempotency = taken
			return w.store.EndSessions(w.ctx, formsvc.SessionQuery{AccountID: account}, change)
		}},
		{"CreateLink, kept", nil, func(change formsvc.Change) error {
			w.wantLinks("EndSessions that failed", link2)
			return w.store.CreateLink(w.ctx, w.newLink(account), change)
		}},
		{"EndSessions", nil, func(change formsvc.Change) error {
			return w.store.EndSessions(w.ctx, formsvc.SessionQuery{AccountID: account}, change)
		}},
	} {
		entry, e := w.newAudit(account), w.newEvent(&formsvc.Response{ID: w.nextID(), AccountID: account, CampaignID: sc.campaign.ID})
		err := c.do(formsvc.Change{Audit: &entry, Events: []formsvc.Event{e}})
		w.wantError(c.what, err, c.err)
		if err == nil {
			want = append(want, entry)
			events++
		} else {
			w.noEvents(c.what, e)
		}
		w.same("audit trail after "+c.what, w.audit(formsvc.AuditQuery{AccountID: account}), want)
		if n := len(w.deliveries(&sc.hook)); n != events {
			w.Errorf("%d deliveries after %s, want %d", n, c.what, events)
		}
	}
}

func testPruneSessions(w *world) {
	a, b := w.addAccount(), w.addAccount()
	var links []formsvc.Link
	var sessions []formsvc.Session
	for i := range 6 { // the first two pairs expire at the beginning of an hour, and so on
		account := []formsvc.ID{a.ID, b.ID}[i%2]
		link, session := w.addLink(account), w.newSession(account)
		session.ExpiresAt = hours(i / 2)
		_, err := w.redeem(&link, session)
		w.must("RedeemLink", err)
		link = w.newLink(account)
		link.ExpiresAt = hours(i / 2)
		w.must("CreateLink", w.store.CreateLink(w.ctx, link, formsvc.Change{}))
		links, sessions = append(links, link), append(sessions, session)
	}
	prune := func(before time.Time, limit, want int) {
		w.Helper()
		n, err := w.store.Prune(w.ctx, formsvc.PruneSessions, before, limit)
		if w.must("PruneSessions", err); n != want {
			w.Errorf("PruneSessions: %d rows, want %d", n, want)
		}
	}
	prune(time.Time{}, 10, 0)
	prune(hours(0), 10, 0)
	prune(hours(9), 0, 0)
	w.wantLinks("PruneSessions of nothing", links...)
	w.wantSessions("PruneSessions of nothing", sessions...)
	prune(hours(0).Add(time.Microsecond).In(time.FixedZone("", 3600)), 10, 4)
	w.wantNoLinks("PruneSessions", links[:2]...)
	w.wantNoSessions("PruneSessions", sessions[:2]...)
	w.wantLinks("PruneSessions of older ones", links[2:]...)
	w.wantSessions("PruneSessions of older ones", sessions[2:]...)
	prune(hours(9), 3, 6)
	prune(hours(9), 3, 2)
	prune(hours(9), 3, 0)
	w.wantNoLinks("PruneSessions of all", links...)
	w.wantNoSessions("PruneSessions of all", sessions...)
}

// testSessionsSurviveClose ends and redeems some before closing, and finds the others after it.
func testSessionsSurviveClose(w *world) {
	a := w.addAccount()
	link, used := w.addLink(a.ID), w.addLink(a.ID)
	session, ended := w.newSession(a.ID), w.addSession(a.ID)
	_, err := w.redeem(&used, session)
	w.must("RedeemLink", err)
	w.must("EndSession", endSession(w.ctx, w.store, a.ID, ended.Hash))
	w.closeAndReopen()
	w.wantLinks("reopening", link)
	w.wantSessions("reopening", session)
	w.wantNoLinks("reopening", used)
	w.wantNoSessions("reopening", ended)
	w.must("EndSessions", w.store.EndSessions(w.ctx, formsvc.SessionQuery{AccountID: a.ID}, formsvc.Change{}))
	w.closeAndReopen()
	w.wantNoLinks("EndSessions and reopening", link)
	w.wantNoSessions("EndSessions and reopening", session)
}
