package storagetest

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// texts returns texts that are hard to store: some database, driver, encoder or collation has changed, refused or
// confused each. All are different.
func texts() []string {
	return []string{
		// Code points.
		"\uFFFE", "\uFFFF", "\U0001FFFE", "\U0010FFFF", "\uFFFD", "\uFEFFwith a mark", "\u200B", "a\u200Bb",
		"\u202Ecba\u202C", "\u2066x\u2069", "\u2028\u2029", "\u00e9", "e\u0301", "\u212B", "\u00C5", "👩‍👩‍👧‍👦",
		"🇫🇷", "\U00020000", "o" + strings.Repeat("\u0302", 50), "\uE000", "\u00AD", "\x01\x02\x1f\x7f", "\u0085",
		// Letters of either case, and case folding.
		"a", "A", "ä", "Ä", "ß", "ẞ", "ss", "SS", "i", "I", "ı", "İ", "ﬁ", "fi", "K", "\u212A",
		// White space.
		" a", "a ", "a  ", "\ta", "a\n", "a\r\n", "a\r", " ", "\u00A0a",
		// Texts that a query or its driver may interpret.
		"?", "??", "?0", "?1", "?TableName", "$1", "$$", "$tag$ $tag$", ":name", "::text", "a::int", "@p1", "%", "_", "%s", "%d%!",
		"--", "-- x\n", "/* x */", ";", "'; DROP TABLE responses; --", "'", "''", "\\'", `\`, `\\`,
		"\"", "`", "[x]", "{a,b}", "E'\\''",
		"NULL", "null", "nil", "true", "0", "00", "1e3", "0x10", "\\N", "{}", "[]", `""`, "2026-01-01T00:00:00Z",
		// What an encoder may take for its own. These are six and more characters, not one.
		`\u0000`, `\\u0000`, `\x00`, `\0`, `%00`, `\ud800`, `\n`, "&amp;", "<script>", "&", "<", ">", "{\"a\":1}",
	}
}

// refusedTexts returns texts that not every store can keep unchanged.
func refusedTexts() []string {
	return []string{
		"\x00", "a\x00b", "a\x00", "\xff", "a\x80", "a\xc3",
		"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "ok \xf0\x9f\x98",
	}
}

// A write is a call that writes a record.
type write struct {
	name  string
	uses  []part
	build func() any // a pointer to a new record
	write func(record any) error
}

func writeOf[T any](name string, uses []part, build func() T, call func(T) error) write {
	return write{name, uses, func() any { return new(build()) }, func(record any) error { return call(*record.(*T)) }}
}

// caller returns a caller that makes calls about a target.
func (w *world) caller(ctx context.Context, at *target) *caller {
	return &caller{w, w.store, ctx, at, at[accountPart]}
}

// writes returns the calls that write all records that have texts.
func (c *caller) writes() []write {
	r := c.at.record()
	newResponse := func() formsvc.Response {
		return c.newResponse(&formsvc.Campaign{ID: c.at[campaignPart], AccountID: c.of})
	}
	return []write{
		writeOf("CreateAccount", nil, c.newAccount, func(a formsvc.Account) error { return c.s.CreateAccount(c.ctx, a, nil, none) }),
		writeOf("CreateKey", ofAccount, func() formsvc.Key { return c.newKey(c.of) }, func(k formsvc.Key) error { return c.s.CreateKey(c.ctx, k, none) }),
		writeOf("CreateCampaign", ofAccount, func() formsvc.Campaign { return c.newCampaign(c.of) }, func(x formsvc.Campaign) error {
			return c.s.CreateCampaign(c.ctx, x, none)
		}),
		writeOf("UpdateCampaign", ofCampaign, func() formsvc.Campaign { return c.newCampaign(c.of) }, func(in formsvc.Campaign) error {
			return rewrite(c.ctx, c.s.UpdateCampaign, c.at.campaign(), none, func(x *formsvc.Campaign) {
				x.CampaignInput, x.Views = in.CampaignInput, in.Views
				if in.FormToken != tokenOf(in.ID) {
					x.FormToken = "changed " + in.FormToken // a new campaign may have it
				}
				x.Version++
			})
		}),
		writeOf("CreateResponse", ofCampaign, newResponse, func(r formsvc.Response) error {
			version := int64(1)
			if now, err := c.s.Campaign(c.ctx, c.at.campaign()); err == nil {
				version = now.Version
			}
			return c.s.CreateResponse(c.ctx, r, version, formsvc.Change{Events: []formsvc.Event{c.newEvent(&r)}})
		}),
		writeOf("UpdateResponse", ofResponse, newResponse, func(in formsvc.Response) error {
			return errorOf(c.s.UpdateResponse(c.ctx, c.at.response(), func(r *formsvc.Response) (formsvc.Change, error) {
				r.Status, r.User, r.Answers, r.Held, r.Metadata = in.Status, in.User, in.Answers, in.Held, in.Metadata
				r.Version++
				return none, formsvc.CheckText(in.Reference)
			}))
		}),
		writeOf("UpdateResponse with an event", ofResponse, func() formsvc.Event { return c.newEvent(r) }, func(e formsvc.Event) error {
			return c.update(c.ctx, c.at.response(), e)
		}),
		writeOf("CreateFile", ofResponse, func() formsvc.File { return c.newFile(r) }, func(f formsvc.File) error { return c.createFile(c.ctx, f) }),
		writeOf("CreateComment", ofResponse, func() formsvc.Comment { return c.newComment(r) }, func(x formsvc.Comment) error {
			return c.s.CreateComment(c.ctx, x, none)
		}),
		writeOf("CreateSignature", ofResponse, func() formsvc.Signature { return c.newSignature(r) }, func(sig formsvc.Signature) error {
			return c.createSignature(c.ctx, sig)
		}),
		writeOf("CreateWebhook", ofAccount, func() formsvc.Webhook { return c.newWebhook(c.of) }, func(h formsvc.Webhook) error {
			_, _, err := c.s.CreateWebhook(c.ctx, h, 10_000, nil)
			return err
		}),
		writeOf("UpdateWebhook", ofHook, func() formsvc.Webhook { return c.newWebhook(c.of) }, func(in formsvc.Webhook) error {
			return rewrite(c.ctx, c.s.UpdateWebhook, c.at.hook(), none, func(h *formsvc.Webhook) {
				h.URL, h.Secret, h.Previous, h.Headers, h.Events = in.URL, in.Secret, in.Previous, in.Headers, in.Events
				h.Version++
			})
		}),
		writeOf("CreateMember", ofAccount, func() formsvc.Member { return c.newMember(c.of) }, func(m formsvc.Member) error {
			m.Email, m.Subject = m.Email+string(m.ID), m.Subject+string(m.ID) // unique
			return c.s.CreateMember(c.ctx, m, none)
		}),
		writeOf("UpdateMember", ofMember, func() formsvc.Member { return c.newMember(c.of) }, func(in formsvc.Member) error {
			return rewrite(c.ctx, c.s.UpdateMember, formsvc.MemberKey{AccountID: c.of, ID: c.at[memberPart]}, none, func(m *formsvc.Member) {
				m.MemberInput, m.Password, m.Issuer, m.Subject = in.MemberInput, in.Password, in.Issuer, in.Subject+string(in.ID)
				m.Email += string(in.ID)
				m.Version++
			})
		}),
		writeOf("CreateSession", ofAccount, func() formsvc.Session { return c.newSession(c.of) }, func(x formsvc.Session) error {
			x.MemberID = c.at[memberPart]
			return c.s.CreateSession(c.ctx, x, none)
		}),
		writeOf("Commit", ofAccount, func() formsvc.AuditEntry { return c.newAudit(c.of) }, func(a formsvc.AuditEntry) error {
			return c.s.Commit(c.ctx, formsvc.Change{Audit: &a})
		}),
		writeOf("Commit of a record", nil, func() formsvc.IdempotencyRecord {
			return c.newRecord(c.of, "key "+string(c.nextID()))
		}, func(r formsvc.IdempotencyRecord) error { return c.s.Commit(c.ctx, formsvc.Change{Idempotency: &r}) }),
	}
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
		if v.Type() == reflect.TypeFor[map[string]int]() {
			list = append(list, place{path + "'s key", v.Type().Key(), func(text string) { v.Set(reflect.ValueOf(map[string]int{text: 1})) }})
		}
		if v.Type() == reflect.TypeFor[map[string]string]() {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
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
	c := w.caller(w.ctx, w.addTarget())
	before := w.snapshot()
	for _, x := range c.writes() {
		for i := range places(x.name, reflect.ValueOf(x.build())) {
			for _, text := range refusedTexts() {
				record := x.build()
				at := places(x.name, reflect.ValueOf(record))[i]
				at.set(text)
				w.wantError(fmt.Sprintf("%s = %+q", at.path, text), x.write(record), formsvc.ErrInvalid)
			}
		}
	}
	for _, text := range refusedTexts() {
		w.wantError(fmt.Sprintf("AccountByName of %+q", text), errorOf(w.store.AccountByName(w.ctx, text)), formsvc.ErrInvalid)
		for _, q := range []formsvc.MemberQuery{{Email: text}, {Subject: text}, {Issuer: text, Subject: "x"}} {
			w.wantError(fmt.Sprintf("Members with %+q", text), errorOf(w.store.Members(w.ctx, q)), formsvc.ErrInvalid)
		}
		for _, filter := range []formsvc.ResponseFilter{
			{Email: text}, {Reference: text}, {Status: []string{"pending", text}}, {Metadata: map[string]string{"a": text}}, {Metadata: map[string]string{text: "a"}},
		} {
			q := formsvc.ResponseQuery{AccountID: c.of, CampaignID: c.at[campaignPart], Filter: filter}
			w.wantError(fmt.Sprintf("Responses with %+q", text), errorOf(w.store.Responses(w.ctx, q)), formsvc.ErrInvalid)
		}
		e := w.newTestEvent(c.at.hook())
		e.Type = formsvc.EventType(text)
		w.wantError(fmt.Sprintf("a test event of %+q", text), w.addTest(e), formsvc.ErrInvalid)
	}
	w.unchanged("refusing texts", &before)
}

// textsKept puts each text in all places of a record at once, except those with fixed values, and finds it again by its
// bytes: texts that only look alike are different.
func textsKept(w *world) any {
	c := w.caller(w.ctx, w.addTarget())
	var found []any
	list := c.writes()
	for _, text := range texts() {
		for _, x := range list {
			record := x.build()
			for _, at := range places(x.name, reflect.ValueOf(record)) {
				if at.typ == reflect.TypeFor[string]() {
					at.set(text)
				}
			}
			if r, ok := record.(*formsvc.Response); ok {
				r.Metadata = formsvc.NewMetadata(map[string]string{text: text})
			}
			w.must(fmt.Sprintf("a %s with %+q", x.name, text), x.write(record))
		}
	}
	for _, text := range texts() {
		record := must(w.store.Recall(w.ctx, c.of, text, start()))(w, "Recall")
		account := must(w.store.AccountByName(w.ctx, text))(w, "AccountByName")
		found = append(found, record, account)
		for _, f := range []formsvc.ResponseFilter{{Email: text}, {Reference: text}, {Status: []string{text}}, {Status: []string{text, "none"}, Email: text}, {Metadata: map[string]string{text: text}}} {
			page := must(w.store.Responses(w.ctx, formsvc.ResponseQuery{AccountID: c.of, CampaignID: c.at[campaignPart], Filter: f}))(w, "Responses")
			found = append(found, page)
		}
	}
	return found
}

// longTexts has the longest texts that services accept.
func longTexts(w *world) any {
	wide := func(runes int) string { return strings.Repeat("𝕏", runes) } // four bytes each
	named := w.newAccount()
	key, c, hook := w.newKey(named.ID), w.newCampaign(named.ID), w.newWebhook(named.ID)
	r := w.newResponse(&c)
	named.Name, key.Name, c.Title, c.Description = wide(100), wide(100), wide(500), wide(10_000)
	c.Metadata = map[string]string{}
	for i := range 500 {
		c.Metadata[fmt.Sprintf("%03d", i%100)+wide(197)] = wide(2_000)
		c.Modules = append(c.Modules, formsvc.Module{Name: fmt.Sprintf("%03d", i) + wide(197), Label: wide(1_000), Type: formsvc.TextModule})
		c.Modules[0].Options = append(c.Modules[0].Options, fmt.Sprintf("%03d", i)+wide(200))
	}
	hook.URL, hook.Secret, hook.Previous = "https://example.com/"+strings.Repeat("x", 2_028), strings.Repeat("s", 256), strings.Repeat("é", 128)
	for i := range formsvc.MaxHeaders {
		hook.Headers = append(hook.Headers, formsvc.Header{Name: strings.Repeat("X", 99) + fmt.Sprint(i), Value: strings.Repeat("v", 2_048)})
	}
	r.Reference, r.User.Email, r.User.FirstName = wide(64), strings.Repeat("x", 242)+"@example.com", wide(200)
	answers := []formsvc.Answer{{Name: wide(200), Value: []string{wide(250_000), strings.Repeat("\"\\\n", 100_000)}}}
	for i := range 1_000 {
		answers = append(answers, formsvc.Answer{Name: fmt.Sprint(1_000 - i), Value: []string{wide(50), ""}})
	}
	r.Answers, r.Metadata = formsvc.NewAnswers(answers...), formsvc.NewMetadata(c.Metadata)
	w.must("CreateAccount", w.store.CreateAccount(w.ctx, named, []formsvc.Key{key}, none))
	w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, c, none))
	_, _, err := w.store.CreateWebhook(w.ctx, hook, 1, nil)
	w.must("CreateWebhook", err)
	w.must("CreateResponse", w.create(r))
	return must(w.store.AccountByName(w.ctx, named.Name))(w, "AccountByName")
}
