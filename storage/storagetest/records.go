package storagetest

import (
	"slices"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func recordTests() []test {
	return []test{
		{"accounts", testAccounts},
		{"keys", testKeys},
		{"key is revoked once", testRevokeKey},
		{"use of keys is recorded", testUseKeys},
		{"concurrent use of keys is recorded", testUseKeysTogether},
		{"campaigns", testCampaigns},
		{"responses", testResponses},
		{"responses are counted", testResponseCount},
		{"webhooks", testWebhooks},
		{"times are kept to the microsecond", testTimes},
		{"arguments are copied", testInputsCopied},
		{"results are copied", testResultsCopied},
	}
}

func testAccounts(w *world) {
	if accounts, err := w.store.Accounts(w.ctx); err != nil || len(accounts) != 0 {
		w.Fatalf("Accounts of an empty store: %v, %v", accounts, err)
	}
	var added []formsvc.Account
	for range 3 {
		added = append(added, w.addAccount())
	}
	reachable := w.newAccount()
	reachable.Contact = "ada@example.com"
	w.must("CreateAccount", w.store.CreateAccount(w.ctx, reachable, nil, formsvc.Change{}))
	added = append(added, reachable)
	for _, want := range added {
		got, err := w.store.Account(w.ctx, want.ID)
		w.must("Account", err)
		w.same("account", got, want)
		got, err = w.store.AccountByName(w.ctx, want.Name)
		w.must("AccountByName", err)
		w.same("account by name", got, want)
	}
	got, err := w.store.Accounts(w.ctx)
	w.must("Accounts", err)
	w.same("accounts", got, added)
}

func testKeys(w *world) {
	a := w.newAccount()
	forever, expiring := w.newKey(a.ID), w.newKey(a.ID)
	expiring.Permissions = formsvc.AllPermissions()
	expiring.ExpiresAt = nextDay()
	w.must("CreateAccount", w.store.CreateAccount(w.ctx, a, []formsvc.Key{forever, expiring}, formsvc.Change{}))
	revoked := w.newKey(a.ID)
	revoked.RevokedAt, revoked.LastUsedAt = nextDay(), nextDay().Add(-time.Hour)
	w.must("CreateKey", w.store.CreateKey(w.ctx, revoked, formsvc.Change{}))

	want := []formsvc.Key{forever, expiring, revoked}
	for i := range want {
		got, err := w.store.KeyByHash(w.ctx, want[i].Hash)
		w.must("KeyByHash", err)
		w.same("key", got, want[i])
	}
	got, err := w.store.Keys(w.ctx, a.ID)
	w.must("Keys", err)
	w.same("keys", got, want)
}

func testRevokeKey(w *world) {
	a := w.addAccount()
	key, other := w.addKey(a.ID), w.addKey(a.ID)
	w.must("RevokeKey", w.store.RevokeKey(w.ctx, a.ID, key.ID, nextDay(), formsvc.Change{}))
	w.must("RevokeKey, again", w.store.RevokeKey(w.ctx, a.ID, key.ID, nextDay().Add(time.Hour), formsvc.Change{}))
	key.RevokedAt = nextDay()
	got, err := w.store.Keys(w.ctx, a.ID)
	w.must("Keys", err)
	w.same("keys", got, []formsvc.Key{key, other})
	byHash, err := w.store.KeyByHash(w.ctx, key.Hash)
	w.must("KeyByHash", err)
	w.same("key", byHash, key)
}

// fullCampaign returns a campaign with all fields set.
func (w *world) fullCampaign(account formsvc.ID) formsvc.Campaign {
	c := w.newCampaign(account)
	c.CampaignInput = formsvc.CampaignInput{
		Title: "All members", Description: "first line\nsecond line", Status: formsvc.CampaignClosed,
		OpensAt: nextDay(), ClosesAt: nextDay().Add(time.Hour),
		Modules: []formsvc.Module{
			{Name: "zeta", Label: "Zeta?", Type: formsvc.TextModule, Required: true, MaxLength: 1_000_000},
			{Name: "alpha", Type: formsvc.ChoiceModule, Options: []string{"b", "a", ""}, Multiple: true},
			{Name: "a b/c~d", Label: "", Type: formsvc.NumberModule},
		},
		Metadata: map[string]string{"b": "1", "a": "", "B": "2"}, EmailOptional: true,
	}
	return c
}

func testCampaigns(w *world) {
	a := w.addAccount()
	want := []formsvc.Campaign{w.newCampaign(a.ID), w.fullCampaign(a.ID)}
	for i := range want {
		w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, want[i], formsvc.Change{}))
		got, err := w.store.Campaign(w.ctx, campaignKey(&want[i]))
		w.must("Campaign", err)
		w.same("campaign", got, want[i])
	}
	w.same("campaigns", w.campaigns(a.ID), want)

	// All fields can be set and cleared.
	filled, empty := want[1].CampaignInput, want[0].CampaignInput
	for _, in := range []formsvc.CampaignInput{filled, empty} {
		at := w.newCampaign(a.ID).CreatedAt
		got, err := w.store.UpdateCampaign(w.ctx, campaignKey(&want[0]), func(c *formsvc.Campaign) error {
			c.CampaignInput, c.UpdatedAt = in, at
			c.Version++
			return nil
		})
		w.must("UpdateCampaign", err)
		want[0].CampaignInput, want[0].UpdatedAt = in, at
		want[0].Version++
		w.same("campaign as updated", got, want[0])
		w.same("campaigns after update", w.campaigns(a.ID), want)
	}
}

func testResponses(w *world) {
	c := w.addCampaign(w.addAccount().ID)
	empty, full := w.newResponse(&c), w.newResponse(&c)
	empty.User, empty.Answers = formsvc.User{Email: "e@example.com"}, formsvc.NewAnswers()
	full.Status, full.Version, full.CompletedAt = "completed", 7, nextDay()
	full.Answers = formsvc.NewAnswers(
		formsvc.Answer{Name: "zeta", Value: []string{"2", "1", "", "2"}},
		formsvc.Answer{Name: "alpha"},
		formsvc.Answer{Name: "10", Value: []string{"1e400", " null "}},
		formsvc.Answer{Name: "9", Value: []string{"line\nline\r\n\ttab"}},
	)
	want := []formsvc.Response{empty, full}
	for i := range want {
		w.must("CreateResponse", w.create(want[i]))
		got, err := w.store.Response(w.ctx, keyOf(&want[i]))
		w.must("Response", err)
		w.same("response", got, want[i])
	}
	w.same("responses", w.responses(&c), want)

	at := nextDay().Add(time.Hour)
	content := []formsvc.Response{full, empty}
	for i, from := range content {
		got, err := w.store.UpdateResponse(w.ctx, keyOf(&empty), func(r *formsvc.Response) (formsvc.Change, error) {
			r.Status, r.User, r.Answers, r.CompletedAt = from.Status, from.User, from.Answers, from.CompletedAt
			r.UpdatedAt = at
			r.Version++
			return formsvc.Change{}, nil
		})
		w.must("UpdateResponse", err)
		updated := want[0]
		updated.Status, updated.User, updated.Answers, updated.CompletedAt = from.Status, from.User, from.Answers, from.CompletedAt
		updated.UpdatedAt, updated.Version = at, int64(i)+2
		w.same("response as updated", got, updated)
		w.same("responses after update", w.responses(&c), []formsvc.Response{updated, full})
	}
}

// Counting a response doesn't change the campaign's version, since decisions based on that version must stay valid.
func testResponseCount(w *world) {
	a := w.addAccount()
	c, other := w.addCampaign(a.ID), w.addCampaign(a.ID)
	for range 3 {
		w.addResponse(&c)
	}
	c.ResponseCount = 3
	w.same("campaigns", w.campaigns(a.ID), []formsvc.Campaign{c, other})
	got, err := w.store.UpdateCampaign(w.ctx, campaignKey(&c), func(c *formsvc.Campaign) error {
		c.Version++
		return nil
	})
	w.must("UpdateCampaign", err)
	c.Version++
	w.same("campaign as updated", got, c)
}

func testWebhooks(w *world) {
	a := w.addAccount()
	c := w.addCampaign(a.ID)
	plain, full := w.newWebhook(a.ID), w.fullWebhook(a.ID, c.ID)
	plain.Events = plain.Events[:1]
	want := []formsvc.Webhook{plain, full}
	for i := range want {
		w.must("CreateWebhook", w.subscribe(want[i], 2))
		got, err := w.store.Webhook(w.ctx, webhookKey(&want[i]))
		w.must("Webhook", err)
		w.same("webhook", got, want[i])
	}
	got, err := w.store.Webhooks(w.ctx, a.ID)
	w.must("Webhooks", err)
	w.same("webhooks", got, want)
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&plain), formsvc.Change{}))
	_, err = w.store.Webhook(w.ctx, webhookKey(&plain))
	w.wantError("Webhook after DeleteWebhook", err, formsvc.ErrNotFound)
	got, err = w.store.Webhooks(w.ctx, a.ID)
	w.must("Webhooks", err)
	w.same("webhooks after DeleteWebhook", got, want[1:])
}

func testTimes(w *world) {
	a := w.addAccount()
	east, west := time.FixedZone("east", 5*3600+1800), time.FixedZone("", -11*3600)
	now := time.Now()
	for _, c := range []struct{ in, want time.Time }{
		{time.Time{}, time.Time{}},
		{time.Time{}.In(east), time.Time{}},
		{time.Unix(0, 0), time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)},
		{time.Unix(0, 1000).In(west), time.Date(1970, 1, 1, 0, 0, 0, 1000, time.UTC)},
		{time.Date(2026, 7, 1, 1, 2, 3, 123_456_000, east), time.Date(2026, 6, 30, 19, 32, 3, 123_456_000, time.UTC)},
		{time.Date(2026, 1, 1, 0, 0, 0, 100_000_000, west), time.Date(2026, 1, 1, 11, 0, 0, 100_000_000, time.UTC)},
		// Times finer than a microsecond are truncated, never rounded up.
		{time.Date(2026, 1, 1, 0, 0, 0, 999_999_999, time.UTC), time.Date(2026, 1, 1, 0, 0, 0, 999_999_000, time.UTC)},
		{time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)},
		{now, now.UTC().Truncate(time.Microsecond)},
	} {
		campaign := w.newCampaign(a.ID)
		campaign.OpensAt, campaign.CreatedAt = c.in, c.in
		w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, campaign, formsvc.Change{}))
		response := w.newResponse(&campaign)
		response.CompletedAt, response.UpdatedAt = c.in, c.in
		w.must("CreateResponse", w.create(response))
		hook := w.newWebhook(a.ID)
		hook.PreviousUntil = c.in
		gotHook, _, err := w.store.CreateWebhook(w.ctx, hook, formsvc.MaxWebhooks, nil)
		w.must("CreateWebhook", err)
		w.same("PreviousUntil", gotHook.PreviousUntil, c.want)
		gotHook, err = w.store.Webhook(w.ctx, webhookKey(&hook))
		w.must("Webhook", err)
		w.same("PreviousUntil", gotHook.PreviousUntil, c.want)
		gotCampaign, err := w.store.Campaign(w.ctx, campaignKey(&campaign))
		w.must("Campaign", err)
		gotResponse, err := w.store.Response(w.ctx, keyOf(&response))
		w.must("Response", err)
		w.same("OpensAt", gotCampaign.OpensAt, c.want)
		w.same("CompletedAt", gotResponse.CompletedAt, c.want)
		if !c.want.IsZero() { // these two are never zero
			w.same("CreatedAt", gotCampaign.CreatedAt, c.want)
			w.same("UpdatedAt", gotResponse.UpdatedAt, c.want)
		}
	}
}

func testInputsCopied(w *world) {
	key := w.newKey("")
	a := w.addAccount(key)
	c := w.fullCampaign(a.ID)
	w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, c, formsvc.Change{}))
	hook := w.fullWebhook(a.ID, "")
	w.must("CreateWebhook", w.subscribe(hook, formsvc.MaxWebhooks))
	r := w.newResponse(&c)
	e := w.newEvent(&r)
	change := formsvc.Change{Events: []formsvc.Event{e}}
	w.must("CreateResponse", w.store.CreateResponse(w.ctx, r, 1, change))
	before := w.snapshot()

	slices.Reverse(key.Permissions)
	slices.Reverse(hook.Events)
	slices.Reverse(hook.Headers)
	spoilCampaign(&c)
	e.Payload[0] = 'X'
	change.Events[0] = formsvc.Event{}
	w.unchanged("the caller changed what it had passed", &before)

	in := w.fullCampaign(a.ID).CampaignInput
	_, err := w.store.UpdateCampaign(w.ctx, campaignKey(&c), func(c *formsvc.Campaign) error {
		c.CampaignInput = in
		c.Version++
		return nil
	})
	w.must("UpdateCampaign", err)
	before = w.snapshot()
	spoilCampaign(&formsvc.Campaign{CampaignInput: in})
	w.unchanged("the caller changed what its function had passed", &before)
}

func testResultsCopied(w *world) {
	a := w.addAccount(w.newKey(""))
	c := w.fullCampaign(a.ID)
	w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, c, formsvc.Change{}))
	hook := w.fullWebhook(a.ID, "")
	w.must("CreateWebhook", w.subscribe(hook, formsvc.MaxWebhooks))
	_, e := w.addResponse(&c)
	before := w.snapshot()

	keys, err := w.store.Keys(w.ctx, a.ID)
	w.must("Keys", err)
	slices.Reverse(keys[0].Permissions)
	key, err := w.store.KeyByHash(w.ctx, keys[0].Hash)
	w.must("KeyByHash", err)
	slices.Reverse(key.Permissions)
	hooks, err := w.store.Webhooks(w.ctx, a.ID)
	w.must("Webhooks", err)
	spoilWebhook(&hooks[0])
	one, err := w.store.Webhook(w.ctx, webhookKey(&hook))
	w.must("Webhook", err)
	spoilWebhook(&one)
	again, _, err := w.store.CreateWebhook(w.ctx, w.twin(&hook), formsvc.MaxWebhooks, nil)
	w.must("CreateWebhook", err)
	spoilWebhook(&again)
	payloads, err := w.store.Payloads(w.ctx, []string{string(e.ID)})
	w.must("Payloads", err)
	payloads[string(e.ID)].Body[0] = 'X'
	campaign, err := w.store.Campaign(w.ctx, campaignKey(&c))
	w.must("Campaign", err)
	spoilCampaign(&campaign)
	spoilCampaign(&w.campaigns(a.ID)[0])
	updated, err := w.store.UpdateCampaign(w.ctx, campaignKey(&c), func(c *formsvc.Campaign) error {
		spoilCampaign(c) // without a new version: not stored
		return nil
	})
	w.must("UpdateCampaign", err)
	w.same("campaign as not updated", updated, before.Campaigns[a.ID][0])
	spoilCampaign(&updated)
	w.unchanged("the caller changed what it had got", &before)
}

// spoilCampaign changes everything that a copy of a campaign could share with it.
func spoilCampaign(c *formsvc.Campaign) {
	c.Modules[1].Options[0] = "spoiled"
	c.Modules[0].Name = "spoiled"
	clear(c.Metadata)
}

// wantKeys fails the test unless the account has exactly these keys.
func (w *world) wantKeys(what string, account formsvc.ID, want ...formsvc.Key) {
	w.Helper()
	got, err := w.store.Keys(w.ctx, account)
	w.must("Keys", err)
	w.same("keys after "+what, got, want)
	for _, key := range want {
		got, err := w.store.KeyByHash(w.ctx, key.Hash)
		w.must("KeyByHash", err)
		w.same("key after "+what, got, key)
	}
}

func testUseKeys(w *world) {
	a, b := w.addAccount(), w.addAccount()
	first, second, idle, theirs := w.addKey(a.ID), w.addKey(a.ID), w.addKey(a.ID), w.addKey(b.ID)
	at := nextDay()
	use := func(key *formsvc.Key, at time.Time) formsvc.KeyUse {
		return formsvc.KeyUse{AccountID: key.AccountID, ID: key.ID, At: at}
	}
	w.must("UseKeys", w.store.UseKeys(w.ctx, nil))
	w.must("UseKeys", w.store.UseKeys(w.ctx, []formsvc.KeyUse{
		use(&first, at.Add(time.Hour)), {AccountID: a.ID, ID: w.nextID(), At: at}, {AccountID: a.ID, ID: theirs.ID, At: at},
		{AccountID: w.nextID(), ID: idle.ID, At: at}, {AccountID: a.ID, ID: "nope", At: at}, {AccountID: "", ID: idle.ID, At: at},
		{AccountID: a.ID, ID: idle.ID[:35] + "\x00", At: at}, use(&second, at.Add(999*time.Nanosecond).In(time.FixedZone("", 3600))),
	}))
	first.LastUsedAt, second.LastUsedAt = at.Add(time.Hour), at
	w.wantKeys("UseKeys", a.ID, first, second, idle)
	w.wantKeys("UseKeys of another account", b.ID, theirs)

	// Only later times count, in any order.
	w.must("UseKeys", w.store.UseKeys(w.ctx, []formsvc.KeyUse{
		use(&first, at), use(&second, at.Add(time.Second)), use(&second, at.Add(time.Hour)), use(&second, at.Add(time.Minute)),
	}))
	second.LastUsedAt = at.Add(time.Hour)
	w.wantKeys("UseKeys, again", a.ID, first, second, idle)
	w.must("RevokeKey", w.store.RevokeKey(w.ctx, a.ID, first.ID, at, formsvc.Change{}))
	first.RevokedAt = at
	w.wantKeys("RevokeKey", a.ID, first, second, idle)
}

// testUseKeysTogether records uses of the same keys concurrently, in different orders.
func testUseKeysTogether(w *world) {
	a := w.addAccount()
	keys := make([]formsvc.Key, 50)
	uses := make([]formsvc.KeyUse, len(keys))
	for i := range keys {
		keys[i] = w.addKey(a.ID)
		uses[i] = formsvc.KeyUse{AccountID: a.ID, ID: keys[i].ID}
		keys[i].LastUsedAt = nextDay().Add((writers - 1) * time.Minute)
	}
	w.together(writers, func(i int) {
		mine := slices.Clone(uses)
		for j := range mine {
			mine[j].At = nextDay().Add(time.Duration((i+j)%writers) * time.Minute)
		}
		if i%2 == 0 {
			slices.Reverse(mine)
		}
		w.check("UseKeys", w.store.UseKeys(w.ctx, mine))
	})
	w.wantKeys("UseKeys by many", a.ID, keys...)
}
