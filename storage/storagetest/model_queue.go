package storagetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// claimSome claims with random shares. More than one claim of a webhook would have leases that end together, and which
// of these goes first isn't specified.
func (m *model) claimSome() {
	m.claim(func() (int, bool) { return oneOf(m, "room", 1, 0), m.chance("late first", 2) })
}

// claim claims for every webhook, after comparing which are ready.
func (m *model) claim(room func() (n int, lateFirst bool)) {
	now := m.tick()
	m.do("Ready", func(s Store, _ int) (any, error) { return s.Ready(m.ctx, now) })
	req := delivery.ClaimRequest{Now: now, Lease: lease, Shares: []delivery.Share{
		{Endpoint: "nope", N: 9}, {Endpoint: "", N: 9}, {Endpoint: strings.ToUpper(string(m.hooks[0].ID)), N: 9},
	}}
	for _, key := range m.hooks {
		n, late := room()
		req.Shares = append(req.Shares, delivery.Share{Endpoint: string(key.ID), N: n, LateFirst: late})
	}
	for _, of := range leased(m, "Claim", func(c *delivery.Claim) (string, *int64) { return c.ID, &c.Lease }, func(s Store) ([]delivery.Claim, error) {
		return s.Claim(m.ctx, req)
	}) {
		for _, before := range m.claims {
			if before.of.ID == of.of.ID && before.lease[subject] >= of.lease[subject] {
				m.Fatalf("Claim: the fencing token does not grow")
			}
		}
		m.claims = append(m.claims, of)
	}
}

// leased makes a call that leases. Its results have no order.
func leased[T any](m *model, name string, of func(*T) (id string, lease *int64), call func(s Store) ([]T, error)) (list []held[T]) {
	var leases [2]map[string]int64
	got := m.do(name, func(s Store, i int) (any, error) {
		items, err := call(s)
		slices.SortFunc(items, func(a, b T) int {
			x, _ := of(&a)
			y, _ := of(&b)
			return cmp.Compare(x, y)
		})
		leases[i] = make(map[string]int64)
		for j := range items {
			id, lease := of(&items[j])
			leases[i][id], *lease = *lease, 0
		}
		return items, err
	})
	for _, x := range got.([]T) {
		id, _ := of(&x)
		list = append(list, held[T]{x, [2]int64{leases[oracle][id], leases[subject][id]}})
	}
	return list
}

// finish finishes claims, which may have ended.
func (m *model) finish() {
	if len(m.claims) == 0 {
		m.claimSome()
		return
	}
	var outcomes [2][]delivery.Outcome
	seen := make(map[string]bool)
	for range m.number("outcomes", 1, 3) {
		c := one(m, "claim", m.claims)
		if seen[c.of.ID] {
			continue
		}
		seen[c.of.ID] = true
		at := m.tick()
		o := delivery.Outcome{
			ID: c.of.ID, Endpoint: c.of.Endpoint, Due: at.Add(oneOf(m, "due", 0, time.Minute, -time.Hour, time.Hour)),
			Result: oneOf(m, "result", delivery.Failed, delivery.Postponed, delivery.Delivered, delivery.Released), Attempt: attempt(c.of.Attempts+1, at),
		}
		o.Attempt.Status, o.Attempt.Duration = oneOf(m, "status", 500, 404), 100*time.Microsecond // it ended before the next tick
		if m.chance("unknown", 30) {
			o.ID = "nope"
		}
		wrong := int64(oneOf(m, "lease", 0, 0, 0, 0, 0, 0, 0, 0, 0, 1000, -1000))
		for i := range outcomes {
			o.Lease = c.lease[i] + wrong
			outcomes[i] = append(outcomes[i], o)
		}
	}
	m.do("Finish", func(s Store, i int) (any, error) { return s.Finish(m.ctx, outcomes[i]) })
}

// delivery returns the key of a delivery, which may not exist.
func (m *model) delivery() (formsvc.DeliveryKey, bool) {
	if len(m.events) == 0 {
		return formsvc.DeliveryKey{}, false
	}
	hook, e := one(m, "webhook", m.hooks), one(m, "event", m.events)
	if len(m.claims) > 0 && m.chance("claimed", 2) {
		return formsvc.DeliveryKey{AccountID: m.owner(hook.AccountID), ID: formsvc.ID(one(m, "claim", m.claims).of.ID)}, true
	}
	return formsvc.DeliveryKey{AccountID: m.owner(hook.AccountID), ID: formsvc.DeliveryID(e.ID, hook.ID)}, true
}

func (m *model) redeliver() {
	key, ok := m.delivery()
	if !ok {
		return
	}
	at := m.tick().Add(oneOf(m, "due", 0, time.Hour))
	edit := decide[*formsvc.Delivery](m, m.change(formsvc.ResponseKey{AccountID: key.AccountID, ID: key.ID}), nil)
	m.do("Redeliver", func(s Store, _ int) (any, error) { return s.Redeliver(m.ctx, key, at, edit) })
	m.do("Delivery", func(s Store, _ int) (any, error) {
		d, err := s.Delivery(m.ctx, key)
		return specified(d), err
	})
}

func (m *model) redeliverFailed() {
	key := m.hook()
	q := formsvc.RedeliverQuery{
		Key: key, Since: oneOf(m, "since", time.Time{}, m.past()), Until: oneOf(m, "until", m.now, m.past()), Pace: time.Second,
		Limit: m.number("limit", 0, 3), At: m.tick(),
	}
	edit := decide[int](m, m.change(formsvc.ResponseKey{AccountID: key.AccountID, ID: key.ID}), nil)
	m.do("RedeliverFailed", func(s Store, _ int) (any, error) { return s.RedeliverFailed(m.ctx, q, edit) })
}

func (m *model) addTest() {
	key := m.hook()
	change := m.change(formsvc.ResponseKey{AccountID: key.AccountID, ID: m.nextID()})
	e := m.event(formsvc.ResponseKey{AccountID: key.AccountID, CampaignID: m.nextID(), ID: m.nextID()})
	e.Test, e.To, e.Retried = true, key.ID, m.chance("retried", 2)
	m.events[len(m.events)-1] = e
	change.Events = append(change.Events, e)
	edit := decide[*formsvc.Webhook](m, change, nil)
	m.do("UpdateWebhook with a test event", func(s Store, _ int) (any, error) { return s.UpdateWebhook(m.ctx, key, edit) })
	m.do("Delivery", func(s Store, _ int) (any, error) {
		return s.Delivery(m.ctx, formsvc.DeliveryKey{AccountID: key.AccountID, ID: formsvc.DeliveryID(e.ID, key.ID)})
	})
}

func (m *model) listDeliveries() {
	key := m.hook()
	ids := mapped(m.claims, func(c *held[delivery.Claim]) formsvc.ID { return formsvc.ID(c.of.ID) })
	q := formsvc.DeliveryQuery{AccountID: key.AccountID, WebhookID: key.ID, Page: m.page(ids...), NoTotal: m.chance("no total", 2)}
	q.State = oneOf(m, "state", "", formsvc.DeliveryPending, formsvc.DeliveryDelivered, formsvc.DeliveryFailed)
	q.Page.MaxBytes = 0
	m.do("Deliveries", func(s Store, _ int) (any, error) {
		page, err := s.Deliveries(m.ctx, q)
		for i := range page.Items {
			page.Items[i] = specified(page.Items[i])
		}
		return page, err
	})
	m.do("Waiting", func(s Store, _ int) (any, error) { return s.Waiting(m.ctx, key, 2) })
	m.do("QueueStats", func(s Store, _ int) (any, error) { return s.QueueStats(m.ctx, m.now, 3) })
}

func (m *model) failures(limit int) {
	now := m.tick()
	m.do("Failures", func(s Store, _ int) (any, error) { return s.Failures(m.ctx, now, now.Add(lease), limit) })
}

func (m *model) noted() {
	var ids []string
	for range m.number("noted", 0, min(len(m.claims), 2)) {
		ids = append(ids, one(m, "claim", m.claims).of.ID)
	}
	m.do("Noted", func(s Store, _ int) (any, error) { return nil, s.Noted(m.ctx, append(ids, "nope")) })
}

func (m *model) listNotices() {
	key := m.hook()
	q := formsvc.NoticeQuery{AccountID: key.AccountID, Page: m.page(), NoTotal: m.chance("no total", 2)}
	if m.chance("of a webhook", 2) {
		q.WebhookID = key.ID
	}
	q.Page.MaxBytes = 0
	m.do("Notices", func(s Store, _ int) (any, error) { return s.Notices(m.ctx, q) })
}

// digest claims digests with room for all: which are first isn't specified.
func (m *model) digest(limit int, every time.Duration) {
	now := m.tick()
	of := func(d *formsvc.Digest) (string, *int64) { return string(d.WebhookID), &d.Lease }
	m.digests = append(m.digests, leased(m, "ClaimDigests", of, func(s Store) ([]formsvc.Digest, error) {
		return s.ClaimDigests(m.ctx, now, every, lease, limit)
	})...)
}

func (m *model) finishDigest() {
	if len(m.digests) == 0 {
		m.digest(100, time.Hour)
		return
	}
	d, at := one(m, "digest", m.digests), m.tick()
	d.of.AccountID = m.owner(d.of.AccountID)
	m.do("FinishDigest", func(s Store, i int) (any, error) {
		of := d.of
		of.Lease = d.lease[i]
		return nil, s.FinishDigest(m.ctx, of, at)
	})
}

func (m *model) feed() {
	q := formsvc.EventQuery{
		AccountID: m.owner(m.accounts[0]), Limit: m.number("limit", 0, 4), MaxBytes: oneOf(m, "bytes", 0, 1, 50), Early: true,
	}
	var after [2]formsvc.Cursor
	if len(m.positions) > 0 && m.chance("after", 2) {
		after = one(m, "position", m.positions)
	}
	if m.chance("of types", 3) {
		q.Types = webhook.EventTypes()[1:3]
	}
	if m.chance("of a campaign", 3) {
		q.CampaignID = one(m, "campaign", m.campaigns).ID
	}
	var next [2]formsvc.Cursor
	m.do("Events", func(s Store, i int) (any, error) {
		q.After = after[i]
		page, err := s.Events(m.ctx, q)
		next[i], page.Next = page.Next, ""
		if len(q.Types) > 0 || q.CampaignID != "" {
			page.More = false // it may say so to read on
		}
		return page, err
	})
	m.positions = append(m.positions, next)
}

func (m *model) recent() {
	q := formsvc.RecentQuery{AccountID: m.owner(m.accounts[0]), Limit: m.number("limit", -1, 5)}
	if m.chance("of types", 3) {
		q.Types = webhook.EventTypes()[1:3]
	}
	if m.chance("of a campaign", 3) {
		q.CampaignID = one(m, "campaign", m.campaigns).ID
	}
	m.do("RecentEvents", func(s Store, _ int) (any, error) { return s.RecentEvents(m.ctx, q) })
}

func (m *model) about() {
	key, limit := m.response(), m.number("limit", 0, 5)
	m.do("EventsAbout", func(s Store, _ int) (any, error) { return s.EventsAbout(m.ctx, key, limit) })
}

func (m *model) note() {
	change := m.change(m.response())
	if !m.chance("events", 8) {
		change.Events = nil
	}
	m.do("Commit", func(s Store, _ int) (any, error) { return nil, s.Commit(m.ctx, change) })
}

func (m *model) recall() {
	account, key := m.owner(m.accounts[0]), oneOf(m, "key", recordKeys()...)
	since := oneOf(m, "since", time.Time{}, m.past())
	m.do("Recall", func(s Store, _ int) (any, error) { return s.Recall(m.ctx, account, key, since) })
}

func (m *model) listAudit() {
	ids := mapped(m.audit, func(a *formsvc.AuditEntry) formsvc.ID { return a.ID })
	q := formsvc.AuditQuery{AccountID: m.owner(m.accounts[0]), Page: m.page(ids...)}
	q.Page.MaxBytes = 0
	q.Action = oneOf[formsvc.AuditAction](m, "action", "", "a")
	if m.chance("since", 3) {
		q.Since = m.past()
	}
	if len(m.audit) > 0 && m.chance("target", 3) {
		q.Target = one(m, "entry", m.audit).Target
	}
	m.do("Audit", func(s Store, _ int) (any, error) { return s.Audit(m.ctx, q) })
}

func (m *model) addQuota() {
	var list []formsvc.QuotaCount
	for _, subject := range m.accounts[:m.number("subjects", 1, len(m.accounts))] {
		list = append(list, formsvc.QuotaCount{Subject: subject, Start: oneOf(m, "window", m.start, m.now), N: m.number("n", -3, 10)})
	}
	m.do("AddQuota", func(s Store, _ int) (any, error) { return s.AddQuota(m.ctx, list) })
}

func (m *model) addLink() {
	l := m.newLink(m.owner(m.accounts[0]))
	if len(m.links) > 0 && m.chance("taken", 10) {
		l.Hash, l.AccountID = one(m, "link", m.links).Hash, m.accounts[0]
	}
	if l.Code = oneOf(m, "code", l.Code, [32]byte{}); len(m.links) > 0 && m.chance("taken code", 10) {
		l.Code, l.AccountID = one(m, "link", m.links).Code, m.accounts[0]
	}
	l.MemberID = oneOf(m, "member", l.MemberID, "")
	m.links = append(m.links, l)
	change := m.change(formsvc.ResponseKey{AccountID: l.AccountID, ID: l.ID})
	m.do("CreateLink", func(s Store, _ int) (any, error) { return nil, s.CreateLink(m.ctx, l, change) })
}

func (m *model) addSession() formsvc.Session {
	x := m.newSession(m.accounts[1])
	m.sessions = append(m.sessions, x)
	return x
}

func (m *model) redeemSome() {
	if len(m.links) == 0 {
		m.addLink()
		return
	}
	x := m.addSession()
	if m.chance("taken", 10) {
		x.Hash = one(m, "session", m.sessions).Hash
	}
	l := one(m, "link", m.links)
	m.redeem(&l, x, m.chance("decide against", 10))
}

func (m *model) redeem(l *formsvc.Link, x formsvc.Session, against bool) {
	var change formsvc.Change
	var decided error
	if against {
		decided = errDecided
	} else {
		change = m.change(formsvc.ResponseKey{AccountID: l.AccountID, ID: x.ID})
	}
	hash := oneOf(m, "secret", l.Hash, l.Hash, l.Code)
	m.do("RedeemLink", func(s Store, _ int) (any, error) {
		return s.RedeemLink(m.ctx, hash, func(of *formsvc.Link) (formsvc.Session, formsvc.Change, error) {
			if of.Hash != hash && of.Code != hash {
				return x, change, fmt.Errorf("another link: %w", formsvc.ErrInvalid)
			}
			return x, change, decided
		})
	})
}

func (m *model) endSessions() {
	account := m.owner(m.accounts[0])
	change := m.change(formsvc.ResponseKey{AccountID: account, ID: m.nextID()})
	if len(m.sessions) > 0 && m.chance("one", 2) {
		hash := one(m, "session", m.sessions).Hash
		m.do("EndSession", func(s Store, _ int) (any, error) { return nil, s.EndSession(m.ctx, account, hash, change) })
		return
	}
	m.do("EndAllSessions", func(s Store, _ int) (any, error) { return nil, s.EndAllSessions(m.ctx, account, change) })
}

func (m *model) prune() {
	kind, before := m.number("kind", 0, 3), m.past()
	if kind == 3 { // oldest first
		limit := m.number("limit", 0, 2)
		m.do("PruneIdempotency", func(s Store, _ int) (any, error) { return s.PruneIdempotency(m.ctx, before, limit) })
		return
	}
	m.do("Prune", func(Store, int) (any, error) { return nil, nil })
	for i := range m.stores {
		m.pruneAll(i, kind, before)
	}
}

func (m *model) erase() {
	q := formsvc.EraseQuery{AccountID: m.owner(m.accounts[0]), Refusals: m.chance("refusals", 3)}
	for range m.number("responses", 0, 2) {
		q.Responses = append(q.Responses, m.response())
	}
	for range m.number("raised", 0, 2) { // perhaps about one that stays, or of another account
		q.Raise = append(q.Raise, m.event(m.response()))
	}
	for range m.number("signatures", 0, min(len(m.signatures), 2)) {
		q.Signatures = append(q.Signatures, one(m, "signature", m.signatures))
	}
	for range m.number("events", 0, min(len(m.events), 2)) {
		q.Events = append(q.Events, one(m, "event", m.events).ID)
	}
	for range m.number("members", 0, min(len(m.members), 2)) {
		q.Members, q.Authors = append(q.Members, one(m, "member", m.members).ID), append(q.Authors, oneOf(m, "author", "Grace", "nobody"))
	}
	for range m.number("replies", 0, 1) {
		q.RepliesOf = append(q.RepliesOf, m.response().ID)
	}
	m.do("Erase", func(s Store, _ int) (any, error) { return s.Erase(m.ctx, q) })
	for i := range q.Responses {
		m.gone[q.Responses[i].ID] = true
	}
}
