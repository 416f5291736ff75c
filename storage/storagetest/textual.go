package storagetest

import (
	"fmt"
	"reflect"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
)

func textTests() []test {
	return []test{
		{"any text is kept", testTextsKept},
		{"text that can't be kept is refused", testTextsRefused},
		{"texts are found by their bytes", testTextsFound},
		{"the longest texts", testLongTexts},
	}
}

// refusedTexts returns texts that not every store can keep unchanged.
func refusedTexts() []string {
	return []string{
		"\x00", "a\x00b", "a\x00", "\xff", "a\x80", "a\xc3",
		"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "ok \xf0\x9f\x98",
	}
}

// A textual is a way to write a record that has texts.
type textual struct {
	name  string
	build func() any // a pointer to a new record
	write func(s Store, record any) error
}

// textuals returns all records of an account that have texts.
func (w *world) textuals(sc *scene, r *formsvc.Response) []textual {
	return []textual{
		textualOf("account", w.newAccount, func(s Store, a formsvc.Account) error {
			return s.CreateAccount(w.ctx, a, nil, formsvc.Change{})
		}),
		textualOf("key", func() formsvc.Key { return w.newKey(sc.account.ID) }, func(s Store, k formsvc.Key) error {
			return s.CreateKey(w.ctx, k, formsvc.Change{})
		}),
		textualOf("campaign", func() formsvc.Campaign { return w.fullCampaign(sc.account.ID) }, func(s Store, c formsvc.Campaign) error {
			return s.CreateCampaign(w.ctx, c, formsvc.Change{})
		}),
		textualOf("campaign's update", func() formsvc.Campaign { return w.fullCampaign(sc.account.ID) }, func(s Store, in formsvc.Campaign) error {
			_, err := s.UpdateCampaign(w.ctx, campaignKey(&sc.campaign), func(c *formsvc.Campaign) error {
				c.CampaignInput = in.CampaignInput
				c.Version++
				return nil
			})
			return err
		}),
		textualOf("response", func() formsvc.Response { return w.newResponse(&sc.campaign) }, func(s Store, r formsvc.Response) error {
			c, err := s.Campaign(w.ctx, campaignKey(&sc.campaign))
			if err != nil {
				return err
			}
			return s.CreateResponse(w.ctx, r, c.Version, formsvc.Change{})
		}),
		textualOf("response's update", func() formsvc.Response { return w.newResponse(&sc.campaign) }, func(s Store, in formsvc.Response) error {
			_, err := s.UpdateResponse(w.ctx, keyOf(r), func(r *formsvc.Response) (formsvc.Change, error) {
				r.Status, r.User, r.Answers = in.Status, in.User, in.Answers
				r.Version++
				return formsvc.Change{}, formsvc.CheckText(in.Reference)
			})
			return err
		}),
		textualOf("file", func() formsvc.File { return w.newFile(r) }, func(s Store, f formsvc.File) error {
			return s.CreateFile(w.ctx, f, deciding[*formsvc.Response](formsvc.Change{}))
		}),
		textualOf("comment", func() formsvc.Comment { return w.newComment(r) }, func(s Store, c formsvc.Comment) error {
			return s.CreateComment(w.ctx, c, formsvc.Change{})
		}),
		textualOf("signature", func() formsvc.Signature { return w.newSignature(r) }, func(s Store, sig formsvc.Signature) error {
			_, err := s.CreateSignature(w.ctx, sig, func(*formsvc.Response, *formsvc.Signature) (formsvc.Change, error) {
				return formsvc.Change{}, nil
			})
			return err
		}),
		textualOf("webhook", func() formsvc.Webhook { return w.fullWebhook(sc.account.ID, "") }, func(s Store, h formsvc.Webhook) error {
			_, _, err := s.CreateWebhook(w.ctx, h, 10_000, nil)
			return err
		}),
		textualOf("webhook's update", func() formsvc.Webhook { return w.fullWebhook(sc.account.ID, "") }, func(s Store, in formsvc.Webhook) error {
			_, err := s.UpdateWebhook(w.ctx, webhookKey(&sc.hook), func(h *formsvc.Webhook) (formsvc.Change, error) {
				h.URL, h.Secret, h.Previous, h.Headers, h.Events = in.URL, in.Secret, in.Previous, in.Headers, in.Events
				h.Version++
				return formsvc.Change{}, nil
			})
			return err
		}),
		textualOf("event", func() formsvc.Event { return w.newEvent(r) }, func(s Store, e formsvc.Event) error {
			_, err := s.UpdateResponse(w.ctx, keyOf(r), func(r *formsvc.Response) (formsvc.Change, error) {
				r.Version++
				return formsvc.Change{Events: []formsvc.Event{e}}, nil
			})
			return err
		}),
		textualOf("audit entry", func() formsvc.AuditEntry { return w.newAudit(sc.account.ID) }, func(s Store, a formsvc.AuditEntry) error {
			return audit(w.ctx, s, a)
		}),
		textualOf("idempotency record", func() formsvc.IdempotencyRecord {
			return w.fullRecord(sc.account.ID, "key "+string(w.nextID()))
		}, func(s Store, r formsvc.IdempotencyRecord) error { return remember(w.ctx, s, r) }),
	}
}

func textualOf[T any](name string, build func() T, write func(Store, T) error) textual {
	return textual{name, func() any {
		v := build()
		return &v
	}, func(s Store, record any) error { return write(s, *record.(*T)) }}
}

// A place is where a record has a text.
type place struct {
	path string
	typ  reflect.Type
	set  func(text string)
}

// places returns the texts of a record, identifiers apart.
func places(path string, v reflect.Value) []place {
	var list []place
	switch v.Kind() {
	case reflect.Pointer:
		return places(path, v.Elem())
	case reflect.String:
		if v.Type() != reflect.TypeFor[formsvc.ID]() {
			list = append(list, place{path, v.Type(), v.SetString})
		}
	case reflect.Slice:
		for i := range v.Len() {
			list = append(list, places(fmt.Sprintf("%s[%d]", path, i), v.Index(i))...)
		}
	case reflect.Map:
		if v.Type() == reflect.TypeFor[map[string]string]() {
			list = append(list,
				place{path + "'s key", v.Type().Key(), func(text string) { v.SetMapIndex(reflect.ValueOf(text), reflect.ValueOf("v")) }},
				place{path + "'s value", v.Type().Elem(), func(text string) { v.SetMapIndex(reflect.ValueOf("k"), reflect.ValueOf(text)) }})
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[formsvc.Answers]() {
			return []place{{path, v.Type(), func(text string) {
				v.Set(reflect.ValueOf(formsvc.StoredAnswers(`{"q":{"value":["` + text + `"]}}`)))
			}}}
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				list = append(list, places(path+"."+v.Type().Field(i).Name, v.Field(i))...)
			}
		}
	}
	return list
}

// testTextsRefused puts each text that can't be kept in each place of each record.
func testTextsRefused(w *world) {
	sc := w.addScene()
	r, _ := w.addResponse(&sc.campaign)
	before := w.snapshot()
	for _, x := range w.textuals(sc, &r) {
		for i := range places(x.name, reflect.ValueOf(x.build())) {
			for _, text := range refusedTexts() {
				record := x.build()
				at := places(x.name, reflect.ValueOf(record))[i]
				at.set(text)
				w.wantError(fmt.Sprintf("%s = %+q", at.path, text), x.write(w.store, record), formsvc.ErrInvalid)
			}
		}
	}
	for _, text := range refusedTexts() {
		_, err := w.store.AccountByName(w.ctx, text)
		w.wantError(fmt.Sprintf("AccountByName of %+q", text), err, formsvc.ErrInvalid)
		for _, filter := range []formsvc.ResponseFilter{{Email: text}, {Reference: text}, {Status: []string{"pending", text}}} {
			_, err = w.store.Responses(w.ctx, formsvc.ResponseQuery{AccountID: sc.account.ID, CampaignID: sc.campaign.ID, Filter: filter})
			w.wantError(fmt.Sprintf("Responses with %+q", text), err, formsvc.ErrInvalid)
		}
		e := w.newTestEvent(sc.account.ID)
		e.Type = formsvc.EventType(text)
		_, err = w.store.CreateTest(w.ctx, webhookKey(&sc.hook), e, nil)
		w.wantError(fmt.Sprintf("CreateTest of %+q", text), err, formsvc.ErrInvalid)
	}
	w.unchanged("refusing texts", &before)
}

// testTextsKept puts each text in all places of a record at once, except those with fixed values, in the store and in a
// memory store: both must keep the same.
func testTextsKept(w *world) {
	a := w.newAccount()
	sc := &scene{account: a, campaign: w.newCampaign(a.ID), hook: w.newWebhook(a.ID)}
	r := w.newResponse(&sc.campaign)
	stores := []Store{memory.New(), w.store}
	for _, s := range stores {
		w.must("CreateAccount", s.CreateAccount(w.ctx, a, nil, formsvc.Change{}))
		w.must("CreateCampaign", s.CreateCampaign(w.ctx, sc.campaign, formsvc.Change{}))
		w.must("CreateResponse", s.CreateResponse(w.ctx, r, 1, formsvc.Change{}))
		_, _, err := s.CreateWebhook(w.ctx, sc.hook, 10, nil)
		w.must("CreateWebhook", err)
	}
	accounts := []formsvc.ID{a.ID}
	for _, text := range texts() {
		for _, x := range w.textuals(sc, &r) {
			record := x.build()
			for _, at := range places(x.name, reflect.ValueOf(record)) {
				if at.typ == reflect.TypeFor[string]() {
					at.set(text)
				}
			}
			if account, ok := record.(*formsvc.Account); ok {
				accounts = append(accounts, account.ID)
			}
			for _, s := range stores {
				w.must(fmt.Sprintf("a %s with %+q", x.name, text), x.write(s, record))
			}
			if key, ok := record.(*formsvc.IdempotencyRecord); ok {
				w.wantRecord("a text", key)
			}
		}
	}
	want, err := contents(w.ctx, stores[oracle], accounts)
	w.must("contents", err)
	got, err := contents(w.ctx, stores[subject], accounts)
	w.must("contents", err)
	w.same("contents", got, want)
}
