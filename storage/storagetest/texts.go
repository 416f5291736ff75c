package storagetest

import (
	"fmt"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

func textTests() []test {
	return []test{
		{"texts are kept byte for byte", testExactTexts},
		{"only equal texts match", testTextsFound},
		{"long texts", testLongTexts},
		{"refused in accounts and keys", testRefusedAccounts},
		{"refused in campaigns", testRefusedCampaigns},
		{"refused in responses", testRefusedResponses},
		{"refused in webhooks and events", testRefusedWebhooks},
		{"refused in queries", testRefusedQueries},
	}
}

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

// wordy has the text in every member that may hold any text.
func (w *world) wordy(account formsvc.ID, text string) (formsvc.Campaign, formsvc.Response) {
	c := w.newCampaign(account)
	c.CampaignInput = formsvc.CampaignInput{
		Title: text, Description: text, Status: formsvc.CampaignStatus(text),
		Modules: []formsvc.Module{{
			Name: text, Label: text, Type: formsvc.ModuleType(text), Options: []string{text, text + text, "x" + text},
		}},
		Metadata: map[string]string{text: text, text + "x": "x" + text},
	}
	r := w.newResponse(&c)
	r.Reference, r.Status, r.User = text, text, formsvc.User{Email: text, FirstName: text, LastName: text}
	r.Answers = formsvc.NewAnswers(
		formsvc.Answer{Name: text, Value: []string{text, text + text}}, formsvc.Answer{Name: text + "x"})
	return c, r
}

func testExactTexts(w *world) {
	a := w.addAccount()
	for _, text := range texts() {
		named := w.newAccount()
		named.Name, named.Contact = text, text
		key := w.newKey(named.ID)
		key.Name, key.Prefix = text, text
		w.must("CreateAccount", w.store.CreateAccount(w.ctx, named, []formsvc.Key{key}, formsvc.Change{}))
		c, r := w.wordy(a.ID, text)
		w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, c, formsvc.Change{}))
		w.must("CreateResponse", w.create(r))
		hook := w.newWebhook(named.ID)
		hook.URL, hook.Secret, hook.Previous = text, text, text
		hook.Headers = []formsvc.Header{{Name: text, Value: text}, {Name: "x" + text, Value: text + text}}
		w.must("CreateWebhook", w.subscribe(hook, 1))

		gotAccount, err := w.store.Account(w.ctx, named.ID)
		w.must("Account", err)
		w.same("account", gotAccount, named)
		gotKey, err := w.store.KeyByHash(w.ctx, key.Hash)
		w.must("KeyByHash", err)
		w.same("key", gotKey, key)
		gotCampaign, err := w.store.Campaign(w.ctx, campaignKey(&c))
		w.must("Campaign", err)
		c.ResponseCount = 1
		w.same("campaign", gotCampaign, c)
		gotResponse, err := w.store.Response(w.ctx, keyOf(&r))
		w.must("Response", err)
		w.same("response", gotResponse, r)
		list, err := gotResponse.Answers.List()
		w.must("Answers", err)
		w.same("answers", list[0], formsvc.Answer{Name: text, Value: []string{text, text + text}})
		gotHook, err := w.store.Webhook(w.ctx, webhookKey(&hook))
		w.must("Webhook", err)
		w.same("webhook", gotHook, hook)
	}
	w.updateTexts(a.ID)
}

// updateTexts puts one text after the other into the same records.
func (w *world) updateTexts(account formsvc.ID) {
	w.Helper()
	c := w.addCampaign(account)
	r, _ := w.addResponse(&c)
	hook := w.addWebhook(account)
	for _, text := range texts() {
		wantHook := hook
		wantHook.URL, wantHook.Secret, wantHook.Previous = text, text, text+text
		wantHook.Headers = []formsvc.Header{{Name: text, Value: text}}
		wantHook.Version++
		hook = w.change(&hook, func(hook *formsvc.Webhook) {
			hook.URL, hook.Secret, hook.Previous, hook.Headers = wantHook.URL, text, wantHook.Previous, wantHook.Headers
		})
		w.same("updated webhook", hook, wantHook)
		gotHook, err := w.store.Webhook(w.ctx, webhookKey(&hook))
		w.must("Webhook", err)
		w.same("webhook after update", gotHook, wantHook)
		gotAccount, err := w.store.UpdateAccount(w.ctx, account, func(a *formsvc.Account) error {
			a.Contact = text
			return nil
		})
		w.must("UpdateAccount", err)
		w.same("contact after update", gotAccount.Contact, text)
		wantCampaign, wantResponse := w.wordy(account, text)
		gotCampaign, err := w.store.UpdateCampaign(w.ctx, campaignKey(&c), func(c *formsvc.Campaign) error {
			c.CampaignInput = wantCampaign.CampaignInput
			c.Version++
			return nil
		})
		w.must("UpdateCampaign", err)
		w.same("updated campaign", gotCampaign.CampaignInput, wantCampaign.CampaignInput)
		_, err = w.store.UpdateResponse(w.ctx, keyOf(&r), func(r *formsvc.Response) (formsvc.Change, error) {
			r.Status, r.User, r.Answers = wantResponse.Status, wantResponse.User, wantResponse.Answers
			r.Version++
			return formsvc.Change{}, nil
		})
		w.must("UpdateResponse", err)
		gotCampaign, err = w.store.Campaign(w.ctx, campaignKey(&c))
		w.must("Campaign", err)
		w.same("campaign after update", gotCampaign.CampaignInput, wantCampaign.CampaignInput)
		got, err := w.store.Response(w.ctx, keyOf(&r))
		w.must("Response", err)
		w.same("status after update", got.Status, text)
		w.same("user after update", got.User, wantResponse.User)
		w.same("answers after update", got.Answers, wantResponse.Answers)
	}
}

// Texts that only look alike are different: names, references and filters are
// compared by their bytes.
func testTextsFound(w *world) {
	a := w.addAccount()
	c := w.addCampaign(a.ID)
	accounts, responses := map[string]formsvc.ID{}, map[string]formsvc.ID{}
	for _, text := range texts() {
		named := w.newAccount()
		named.Name = text
		w.must(fmt.Sprintf("CreateAccount %+q", text), w.store.CreateAccount(w.ctx, named, nil, formsvc.Change{}))
		_, r := w.wordy(a.ID, text)
		r.CampaignID = c.ID
		w.must(fmt.Sprintf("CreateResponse with reference %+q", text), w.create(r))
		accounts[text], responses[text] = named.ID, r.ID
	}
	for text, id := range responses {
		account, err := w.store.AccountByName(w.ctx, text)
		if err != nil || account.ID != accounts[text] {
			w.Errorf("AccountByName %+q: %s, %v; want %s", text, account.ID, err, accounts[text])
		}
		for _, filter := range []formsvc.ResponseFilter{
			{Email: text}, {Reference: text}, {Status: []string{text}}, {Status: []string{text, "none"}, Email: text},
		} {
			page, err := w.store.Responses(w.ctx, formsvc.ResponseQuery{AccountID: a.ID, CampaignID: c.ID, Filter: filter})
			w.must("Responses", err)
			if page.Total != 1 || len(page.Items) != 1 || page.Items[0].ID != id {
				w.Errorf("Responses with filter %+v: %d responses, want the one that has it", filter, page.Total)
			}
		}
	}
}

func testLongTexts(w *world) {
	wide := func(runes int) string { return strings.Repeat("𝕏", runes) } // four bytes each
	named := w.newAccount()
	named.Name = wide(100)
	key := w.newKey(named.ID)
	key.Name = wide(100)
	w.must("CreateAccount", w.store.CreateAccount(w.ctx, named, []formsvc.Key{key}, formsvc.Change{}))
	c := w.newCampaign(named.ID)
	c.Title, c.Description, c.Metadata = wide(500), wide(10_000), map[string]string{}
	for i := range 100 {
		c.Metadata[fmt.Sprintf("%03d", i)+wide(197)] = wide(2_000)
	}
	for i := range 500 {
		m := formsvc.Module{Name: fmt.Sprintf("%03d", i) + wide(197), Label: wide(1_000), Type: formsvc.TextModule}
		c.Modules = append(c.Modules, m)
	}
	c.Modules[7].Options = make([]string, 1_000)
	for i := range c.Modules[7].Options {
		c.Modules[7].Options[i] = fmt.Sprintf("%04d", i) + wide(100)
	}
	w.must("CreateCampaign", w.store.CreateCampaign(w.ctx, c, formsvc.Change{}))
	hook := w.newWebhook(named.ID)
	hook.URL = "https://example.com/" + strings.Repeat("x", 2_028)
	hook.Secret, hook.Previous = strings.Repeat("s", 256), strings.Repeat("é", 128)
	for i := range formsvc.MaxHeaders {
		hook.Headers = append(hook.Headers, formsvc.Header{Name: strings.Repeat("X", 99) + fmt.Sprint(i), Value: strings.Repeat("v", 2_048)})
	}
	w.must("CreateWebhook", w.subscribe(hook, 1))

	deep := w.newResponse(&c)
	deep.Reference = wide(64)
	deep.User = formsvc.User{Email: strings.Repeat("x", 242) + "@example.com", FirstName: wide(200), LastName: wide(200)}
	deep.Answers = formsvc.NewAnswers(
		formsvc.Answer{Name: wide(200), Value: []string{wide(250_000), strings.Repeat("\"\\\n", 100_000)}})
	var answers []formsvc.Answer
	for i := range 1_000 {
		answers = append(answers, formsvc.Answer{Name: fmt.Sprint(1_000 - i), Value: []string{wide(50), ""}})
	}
	broad := w.newResponse(&c)
	broad.Answers = formsvc.NewAnswers(answers...)
	w.must("CreateResponse", w.create(deep))
	w.must("CreateResponse", w.create(broad))

	c.ResponseCount = 2
	got := w.snapshot()
	w.same("accounts", got.Accounts, []formsvc.Account{named})
	w.same("keys", got.Keys[named.ID], []formsvc.Key{key})
	w.same("campaigns", got.Campaigns[named.ID], []formsvc.Campaign{c})
	w.same("webhooks", got.Webhooks[named.ID], []formsvc.Webhook{hook})
	w.same("responses", got.Responses[c.ID], []formsvc.Response{deep, broad})
	byName, err := w.store.AccountByName(w.ctx, named.Name)
	w.must("AccountByName", err)
	w.same("account by name", byName, named)
}
