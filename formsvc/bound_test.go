package formsvc_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

type bounds = formsvc.Module

// Bounds compare numbers and days by their exact values, in every module and every way in.
func TestBounds(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		module bounds
		code   string
		good   []string
		bad    []string
	}{
		{bounds{Type: "number", Min: "1", Max: "10"}, "out_of_range", []string{"1", "1.0", "1e0", "1e1", "9.99"}, []string{"0", "-3", "0.999999999999999999999", "1e3", "10.000000000000000000001"}},
		{bounds{Type: "number", Min: "-0.5"}, "out_of_range", []string{"-0.5", "-5e-1", "0", "1e300"}, []string{"-0.51", "-1e999"}},
		{bounds{Type: "number", Max: "9007199254740993"}, "out_of_range", []string{"9007199254740993", "-1"}, []string{"9007199254740994"}},
		{bounds{Type: "number", Integer: true}, "not_integer", []string{"12", "-3", "1e3", "1.0", "120e-1"}, []string{"0.5", "125e-1", "1e-999", "123456789012345678901.5"}},
		{bounds{Type: "date", Min: "2026-01-31", Max: "2026-12-31"}, "out_of_range", []string{"2026-01-31", "2026-12-31"}, []string{"2026-01-30", "2027-01-01", "0001-01-01"}},
	} {
		c.module.Name, c.module.Multiple = "m", true
		campaign := w.campaign(c.module)
		wantFaults(t, failure(w.submit(&campaign, answer("m", c.good...))))
		for _, value := range c.bad {
			wantFaults(t, failure(w.submit(&campaign, answer("m", value))), "/responses/m/value/0 "+c.code)
		}
		var copied formsvc.Module
		text, err := json.Marshal(campaign.Modules[0])
		if err == nil {
			err = json.Unmarshal(text, &copied)
		}
		if err != nil || copied.Min != c.module.Min || copied.Max != c.module.Max || copied.Integer != c.module.Integer {
			t.Errorf("%s became %+v, %v", text, copied, err)
		}
	}
}

func TestBoundDefinitions(t *testing.T) {
	w := newWorld(t)
	types := make([]string, 51)
	for _, c := range []struct {
		module bounds
		want   []string
	}{
		{bounds{Type: "number", Min: "-1.5", Max: "-1.5"}, nil},
		{bounds{Type: "number", Min: "10", Max: "9"}, []string{"/max out_of_range"}},
		{bounds{Type: "number", Min: "1,5", Max: "2026-01-01"}, []string{"/min invalid_value", "/max invalid_value"}},
		{bounds{Type: "date", Min: "2026-01-02", Max: "2026-01-01"}, []string{"/max out_of_range"}},
		{bounds{Type: "date", Min: "1", Integer: true}, []string{"/min invalid_value", "/integer not_applicable"}},
		{bounds{Type: "text", Min: "1", Max: "x", Integer: true, Accept: []string{"*"}}, []string{"/min not_applicable", "/max not_applicable", "/integer not_applicable", "/accept not_applicable"}},
		{bounds{Type: "file", Accept: []string{"image/*", ".pdf", ".tar.gz", "application/vnd.ms-excel"}}, nil},
		{bounds{Type: "file", Accept: []string{"", "*", "pdf", "image/", "*/*", ".", "a b/c", "image/png, .pdf"}}, []string{
			"/accept/0 invalid_value", "/accept/1 invalid_value", "/accept/2 invalid_value", "/accept/3 invalid_value",
			"/accept/4 invalid_value", "/accept/5 invalid_value", "/accept/6 invalid_value", "/accept/7 invalid_value",
		}},
		{bounds{Type: "file", Accept: types}, []string{"/accept too_many"}},
	} {
		c.module.Name = "m"
		_, err := w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x", Modules: []formsvc.Module{c.module}})
		for i := range c.want {
			c.want[i] = "/modules/0" + c.want[i]
		}
		wantFaults(t, err, c.want...)
	}
}

// A file has the declared type, or that of its extension.
func TestAccept(t *testing.T) {
	w := newFileWorld(t)
	campaign := w.campaign(bounds{Name: "photo", Type: "file", Accept: []string{"image/*", ".PDF"}}, bounds{Name: "any", Type: "file"})
	r := w.submitted(&campaign)
	for _, c := range []struct {
		module, name, contentType string
		ok                        bool
	}{
		{"photo", "a", "image/png", true},
		{"photo", "a", "IMAGE/JPEG; q=1", true},
		{"photo", "a.JPG", "application/octet-stream", true},
		{"photo", "a.pdf", "", true},
		{"photo", "a.exe", "application/octet-stream", false},
		{"photo", "pdf", "application/pdf", false},
		{"photo", "a", "imagery/png", false},
		{"any", "a.exe", "", true},
		{"", "a.exe", "", true},
	} {
		for _, late := range []bool{false, true} { // the module may be known only at the end
			in := formsvc.FileInput{Name: c.name, ContentType: c.contentType, Module: c.module, Content: strings.NewReader("x")}
			if late {
				in.Module, in.Complete = "", func(in *formsvc.FileInput) error {
					in.Module = c.module
					return nil
				}
			}
			_, err := w.svc.Files.Upload(w.ctx, r.Key(), in)
			if c.ok {
				wantFaults(t, err)
			} else {
				wantFaults(t, err, "/file file_type")
			}
		}
	}
	equal(t, len(w.shelf.keys(t)), 12, "%d blobs are kept")
}

// A condition names values that the other module can have.
func TestImpossibleConditions(t *testing.T) {
	w := newWorld(t)
	first := func(m bounds) bounds {
		m.Name = "first"
		return m
	}
	for _, c := range []struct {
		on        bounds
		good, bad []string
	}{
		{bounds{Type: "choice", Options: []string{"Dog", "cat"}}, []string{"Dog", "cat"}, []string{"dog", "Dog ", "", "bird"}},
		{bounds{Type: "choice", Options: []string{"1"}, Multiple: true}, []string{"1"}, []string{"2"}},
		{bounds{Type: "boolean"}, []string{"true", "false"}, []string{"Yes", "yes", "on", ""}},
		{bounds{Type: "number", Max: "3", Integer: true}, []string{"3", "-1"}, []string{"three", "4", "0.5", "1,5"}},
		{bounds{Type: "date"}, []string{"2026-02-28"}, []string{"2026-02-30", "28.02.2026"}},
		{bounds{Type: "email"}, []string{"a@b"}, []string{"a"}},
		{bounds{Type: "url"}, []string{"https://a"}, []string{"a"}},
		{bounds{Type: "text", MaxLength: 2}, []string{"ab", ""}, []string{"abc"}},
	} {
		shown := bounds{Name: "then", ShowIf: &formsvc.Condition{Module: "first", Equals: slices.Concat(c.good, c.bad)}}
		want := make([]string, len(c.bad))
		for i := range want {
			want[i] = "/modules/1/showIf/equals/" + string(rune('0'+len(c.good)+i)) + " impossible"
		}
		_, err := w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x", Modules: []formsvc.Module{first(c.on), shown}})
		wantFaults(t, err, want...)
	}
}

// The names of the user's fields are for modules of the same type.
func TestReservedNames(t *testing.T) {
	w := newWorld(t)
	for name, of := range map[string]formsvc.ModuleType{"email": "email", "firstName": "text", "lastName": "text", "Email": "", "e_mail": ""} {
		for _, kind := range []formsvc.ModuleType{"text", "longtext", "email", "url", "number", "date", "boolean", "choice", "file"} {
			m := bounds{Name: name, Type: kind}
			if kind == formsvc.ChoiceModule {
				m.Options = []string{"x"}
			}
			_, err := w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x", Modules: []formsvc.Module{m}})
			if of == "" || of == kind {
				wantFaults(t, err)
			} else {
				wantFaults(t, err, "/modules/0/name reserved")
			}
		}
	}
}

// Addresses are the same if mail systems take them for the same, and different otherwise.
func TestFoldEmail(t *testing.T) {
	for _, same := range [][]string{
		{"josé@example.com", "jose\u0301@example.com", "JOSÉ@EXAMPLE.COM", "JOSE\u0301@Example.com"},
		{"a@münchen.example", "A@MÜNCHEN.example", "a@xn--mnchen-3ya.example", "a@XN--MNCHEN-3YA.Example", "a@mu\u0308nchen.example"},
		{"σ@b.c", "Σ@b.c", "ς@b.c"},
		{"ı@b.c"}, {"i@b.c", "I@b.c"}, {"İ@b.c"}, {"straße@b.c"}, {"strasse@b.c"}, {"jose@example.com"}, {"xn--mnchen-3ya@b.c"}, {"münchen@b.c"},
	} {
		for _, s := range same {
			if got := formsvc.FoldEmail(s); got != formsvc.FoldEmail(same[0]) || formsvc.FoldEmail(got) != got {
				t.Errorf("%q is %q, want %q", s, got, formsvc.FoldEmail(same[0]))
			}
		}
	}
	if a, b := formsvc.FoldEmail("ı@b.c"), formsvc.FoldEmail("i@b.c"); a == b {
		t.Errorf("%q and %q are one address", a, b)
	}
	if a, b := formsvc.FoldEmail("straße@b.c"), formsvc.FoldEmail("strasse@b.c"); a == b {
		t.Errorf("%q and %q are one address", a, b)
	}
}

// A person is found whatever the form of their address.
func TestErasePersonInAnyForm(t *testing.T) {
	for _, stored := range []string{"josé@münchen.example", "jose\u0301@xn--mnchen-3ya.example", "JOSÉ@mu\u0308nchen.example"} {
		w := newWorld(t)
		campaign := w.campaign()
		r := must(w.svc.Responses.Create(w.ctx, campaign.Key(), formsvc.ResponseInput{User: formsvc.User{Email: stored}}))
		must(w.svc.Signatures.Create(w.ctx, r.Key(), formsvc.SignatureInput{Signer: formsvc.User{Email: stored}}))
		other := w.submitted(&campaign)
		must(w.svc.Signatures.Create(w.ctx, other.Key(), formsvc.SignatureInput{Signer: formsvc.User{Email: stored}}))
		receipt := must(w.svc.Accounts.ErasePerson(w.ctx, w.account, "Jose\u0301@MÜNCHEN.example"))
		if receipt.Responses != 1 || receipt.Signatures != 1 || receipt.Events != 3 {
			t.Errorf("%q: %+v", stored, receipt)
		}
	}
}

// Nobody sees what an invisible character does to an address.
func TestInvisibleCharactersInAddresses(t *testing.T) {
	for _, c := range "\u200b\u200c\u200d\u2060\ufeff\u00ad\u202e\u3164\u2800\ufe0f\u00a0\u2003\u0085" {
		if formsvc.ValidEmail("a"+string(c)+"b@example.com") || formsvc.ValidEmail("a@exam"+string(c)+"ple.com") {
			t.Errorf("%U is taken", c)
		}
	}
}

// A visitor's address has a domain that mail finds; a program's may be in a network of its own.
func TestVisitorsDomain(t *testing.T) {
	w := newWorld(t)
	campaign := must(w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{
		Title: "x", Form: formsvc.Form{Enabled: true}, Modules: []formsvc.Module{{Name: "other", Type: formsvc.EmailModule}},
	}))
	in := formsvc.ResponseInput{User: formsvc.User{Email: "anna@example"}, Answers: []formsvc.Answer{answer("other", "b@localhost")}}
	must(w.svc.Responses.Create(w.ctx, campaign.Key(), in))
	in.FormToken = campaign.FormToken
	wantFaults(t, failure(w.svc.Responses.Create(w.ctx, campaign.Key(), in)), "/user/email invalid_email", "/responses/other/value/0 invalid_email")
	in.User.Email, in.Answers[0].Value[0] = "anna@example.com", "b@例子.广告"
	must(w.svc.Responses.Create(w.ctx, campaign.Key(), in))
}
