package storagetest

import (
	"fmt"
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
	w.same("accounts", got["account of "+string(named.ID)], named)
	w.same("keys", got["keys of "+string(named.ID)], []formsvc.Key{key})
	w.same("campaigns", got["campaigns of "+string(named.ID)], []formsvc.Campaign{c})
	w.same("webhooks", got["webhooks of "+string(named.ID)], []formsvc.Webhook{hook})
	w.same("responses", got["responses of "+string(c.ID)], []formsvc.Response{deep, broad})
	byName, err := w.store.AccountByName(w.ctx, named.Name)
	w.must("AccountByName", err)
	w.same("account by name", byName, named)
}
