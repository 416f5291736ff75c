package formsvc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

func TestModuleDefinitions(t *testing.T) {
	numbers := func(n int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprint(i)
		}
		return list
	}
	w := newWorld(t)
	create := func(modules ...formsvc.Module) error {
		_, err := w.svc.Campaigns.Create(w.ctx, w.account, formsvc.CampaignInput{Title: "x", Modules: modules})
		return err
	}
	type module = formsvc.Module
	type condition = formsvc.Condition
	long := strings.Repeat("ü", 200)
	for _, c := range []struct {
		m    module
		want []string
	}{
		{module{}, []string{"/name required"}},
		{module{Name: long, Label: strings.Repeat("ü", 1_000), MaxLength: 1_000_000}, nil},
		{module{Name: long + "x", Label: strings.Repeat("ü", 1_001), MaxLength: 1_000_001}, []string{
			"/name too_long", "/label too_long", "/maxLength out_of_range",
		}},
		{module{Name: "a", Type: "Text", Options: []string{"x"}, MaxLength: -1}, []string{"/type invalid_value"}},
		{module{Name: "a", Type: "number", MaxLength: -1}, []string{"/maxLength out_of_range"}},
		{module{Name: "a", Type: "email", MaxLength: 1}, nil},
		{module{Name: "a", Type: "number", MaxLength: 1}, []string{"/maxLength not_applicable"}},
		{module{Name: "a", Type: "choice", Options: []string{"x"}, MaxLength: 1}, []string{"/maxLength not_applicable"}},
		{module{Name: "a", Type: "boolean", Options: []string{"true"}}, []string{"/options not_applicable"}},
		{module{Name: "a", Help: long + long, Placeholder: long, ShowIf: &condition{"first", numbers(100)}}, nil},
		{module{Name: "a", Type: "longtext", MaxLength: 1, Help: strings.Repeat("x", 2_001), Placeholder: long + "x", ShowIf: &condition{}}, []string{
			"/help too_long", "/placeholder too_long", "/showIf/module required", "/showIf/equals required",
		}},
		{module{Name: "a", Type: "date", Placeholder: "x", ShowIf: &condition{"a", numbers(101)}}, []string{
			"/placeholder not_applicable", "/showIf/module unknown_module", "/showIf/equals too_many",
		}},
		{module{Name: "a", Type: "file", MaxLength: 1, ShowIf: &condition{"attached", []string{"", "\x00"}}}, []string{
			"/maxLength not_applicable", "/showIf/module unknown_module", "/showIf/equals/1 nul_not_allowed",
		}},
		{module{Name: "a", Type: "rating", Min: "3", Max: "3", MinLabel: long, MaxLabel: long, Default: []string{"3"}, ShowIf: &condition{"agreed", []string{"true"}}}, nil},
		{module{Name: "a", Type: "rating", Min: "6"}, []string{"/max out_of_range"}},
		{module{Name: "a", Type: "scale", Min: "-50", Max: "50"}, nil},
		{module{Name: "a", Type: "scale", Min: "-50", Max: "51", Multiple: true}, []string{"/multiple not_applicable", "/max out_of_range"}},
		{module{Name: "a", Type: "scale", Min: "1.0", Max: "1e1", MaxLabel: long + "x", Default: []string{"10"}, Integer: true}, []string{
			"/maxLabel too_long", "/min invalid_value", "/max invalid_value", "/integer not_applicable",
		}},
		{module{Name: "a", Type: "time", Min: "09:00", Max: "08:59", MinLabel: "x"}, []string{"/minLabel not_applicable", "/max out_of_range"}},
		{module{Name: "a", Type: "time", Max: "24:00", ShowIf: &condition{"agreed", []string{"false"}}}, []string{"/max invalid_value", "/showIf/equals/0 impossible"}},
		{module{Name: "a", Type: "phone", Placeholder: "x", MaxLength: 20, Multiple: true, Default: []string{"112"}}, []string{"/default/0 invalid_phone"}},
		{module{Name: "a", Type: "consent", Multiple: true, Min: "1", Default: []string{"true"}}, []string{
			"/multiple not_applicable", "/min not_applicable", "/default not_applicable",
		}},
		{module{Name: "a", Type: "choice"}, []string{"/options out_of_range"}},
		{module{Name: "a", Type: "choice", Options: numbers(1_000)}, nil},
		{module{Name: "a", Type: "choice", Options: numbers(1_001)}, []string{"/options out_of_range"}},
		{
			module{Name: "a", Type: "choice", Options: []string{"x", "", "x", strings.Repeat("ü", 501), "\x00", ""}},
			[]string{"/options/2 duplicate", "/options/3 too_long", "/options/4 nul_not_allowed", "/options/5 duplicate"},
		},
		{module{Name: "a", Type: "choice", Options: []string{strings.Repeat("ü", 500)}}, nil},
		{module{Name: "\x00", Label: "\xff", MaxLength: -1, Options: []string{"x"}}, []string{
			"/name nul_not_allowed", "/label invalid_utf8", "/maxLength out_of_range", "/options not_applicable",
		}},
	} {
		var want []string
		for _, s := range c.want {
			want = append(want, "/modules/3"+s)
		}
		wantFaults(t, create(module{Name: "first"}, module{Name: "attached", Type: "file"}, module{Name: "agreed", Type: "consent"}, c.m), want...)
	}
	many := make([]formsvc.Module, 501)
	for i := range many {
		many[i].Name = fmt.Sprint(i)
	}
	wantFaults(t, create(many[:500]...))
	wantFaults(t, create(many...), "/modules too_many")
	a := formsvc.Module{Name: "a"}
	wantFaults(t, create(a, formsvc.Module{Name: "A"}, a, a), "/modules/2/name duplicate", "/modules/3/name duplicate")
}

// valueCases has accepted values for each module type, and refused values with their code.
var valueCases = []struct {
	module    formsvc.Module
	code      string
	good, bad []string
}{
	{
		formsvc.Module{Type: formsvc.TextModule}, "",
		[]string{"", " ", "a\nb", "🌍", "\ufeff\u202e", "'; -- $1 ?0 ::", "\ufffe", `\u0000`},
		nil,
	},
	{
		formsvc.Module{Type: formsvc.LongTextModule, MaxLength: 3}, "too_long",
		[]string{"", "abc", "🌍🌍🌍"},
		[]string{"abcd", "🌍🌍🌍🌍", "e\u0301e\u0301"},
	},
	{
		formsvc.Module{Type: formsvc.EmailModule}, "invalid_email",
		[]string{"a@b", "ada@example.com"},
		[]string{"", "a", "a@", "@b", "Ada <ada@example.com>", "a@b, c@d"},
	},
	{
		formsvc.Module{Type: formsvc.EmailModule, MaxLength: 5}, "too_long",
		[]string{"a@b.c"},
		[]string{"aa@b.c", "not an address"},
	},
	{
		formsvc.Module{Type: formsvc.URLModule}, "invalid_url",
		[]string{"http://a", "https://example.com:8443/p?q=1#f", "HTTPS://EXAMPLE.COM", "http://[::1]/", "http://münchen.example"},
		[]string{
			"", "example.com", "//example.com", "/path", "javascript:alert(1)", "http://", "http://:80", "http://a b", "mailto:a@b", " http://a",
		},
	},
	{
		formsvc.Module{Type: formsvc.NumberModule}, "invalid_number",
		[]string{"0", "-0", "12", "-0.5", "1e3", "1E+300", "9007199254740993", "1e-999", strings.Repeat("9", 400)},
		[]string{
			"", "01", "+1", ".5", "1.", "1e", "1e1000", "0x10", "1_000", "1,5", " 1", "1\n", "NaN", "Infinity", "١", "--1",
			strings.Repeat("9", 401),
		},
	},
	{
		formsvc.Module{Type: formsvc.DateModule}, "invalid_date",
		[]string{"2026-11-21", "2024-02-29", "0001-01-01", "9999-12-31"},
		[]string{
			"", "0000-01-01", "2026-02-29", "2026-13-01", "2026-00-10", "2026-1-2", "26-11-21", "10000-01-01", "2026-11-21T00:00:00Z",
			"21.11.2026", "infinity", "2026-11-21 ", "-001-01-01",
		},
	},
	{
		formsvc.Module{Type: formsvc.BooleanModule}, "invalid_boolean",
		[]string{"true", "false"},
		[]string{"", "True", "1", "0", "yes", "true "},
	},
	{
		formsvc.Module{Type: formsvc.PhoneModule}, "invalid_phone",
		[]string{"+49 (0)30 / 123-456", "06 12 34 56 78", "123456", "٠١٢٣٤٥٦", "20 ext 123456 12345678901", "0800 FORMS 123"},
		[]string{"", "12345", "123456789012345678901", "none", "123456\n"},
	},
	{
		formsvc.Module{Type: formsvc.TimeModule}, "invalid_time",
		[]string{"00:00", "09:05", "23:59"},
		[]string{"", "24:00", "9:5", "9:05", "12:60", "12:00:00", " 12:00", "12:00 pm", "1200"},
	},
	{
		formsvc.Module{Type: formsvc.ChoiceModule, Options: []string{"a", "", "ä"}}, "unknown_option",
		[]string{"a", "", "ä"},
		[]string{"b", "A", "a ", "a\u0308"},
	},
}

func TestModuleValues(t *testing.T) {
	for _, c := range valueCases {
		t.Run(fmt.Sprint(c.module.Type, c.module.MaxLength), func(t *testing.T) {
			w := newWorld(t)
			c.module.Name, c.module.Multiple = "m", true
			campaign := w.campaign(c.module)
			r, err := w.submit(&campaign, answer("m", c.good...))
			wantFaults(t, err)
			if got, ok := r.Answers.Get("m"); !ok || !slices.Equal(got, c.good) {
				t.Errorf("the answer is %q", got)
			}
			_, err = w.submit(&campaign, answer("m", slices.Concat(c.good, c.bad)...))
			var want []string
			for i := range c.bad {
				want = append(want, fmt.Sprintf("/responses/m/value/%d %s", len(c.good)+i, c.code))
			}
			wantFaults(t, err, want...)
		})
	}
}

func TestAnswersAgainstModules(t *testing.T) {
	w := newWorld(t)
	c := w.campaign(
		formsvc.Module{Name: "one", Required: true},
		formsvc.Module{Name: "many", Multiple: true},
		formsvc.Module{Name: "a/b~c", Type: formsvc.NumberModule, Required: true},
	)
	for _, test := range []struct {
		answers []formsvc.Answer
		want    []string
	}{
		{[]formsvc.Answer{answer("one", " \u0600"), answer("a/b~c", "1")}, nil},
		{[]formsvc.Answer{answer("one", ""), answer("a/b~c", "1")}, []string{"/responses/one required"}},
		{[]formsvc.Answer{answer("one", "\u200b\u00a0\u3164\u2800\ufe0f\t"), answer("a/b~c", "1")}, []string{"/responses/one required"}},
		{[]formsvc.Answer{answer("a/b~c", "1"), answer("many", "1", "1", "1"), answer("one", "x")}, nil},
		{nil, []string{"/responses/one required", "/responses/a~1b~0c required"}},
		{[]formsvc.Answer{answer("one"), answer("a/b~c", "1")}, []string{"/responses/one required"}},
		{[]formsvc.Answer{answer("many"), answer("one", "x"), answer("a/b~c", "1")}, nil},
		{ // everything in the order of the input, then what is missing
			[]formsvc.Answer{answer("a/b~c", "x", "1", "y"), answer("x/y"), answer("One", "x"), answer("many")},
			[]string{
				"/responses/a~1b~0c/value too_many", "/responses/a~1b~0c/value/0 invalid_number",
				"/responses/a~1b~0c/value/2 invalid_number", "/responses/x~1y unknown_module", "/responses/One unknown_module",
				"/responses/one required",
			},
		},
	} {
		wantFaults(t, failure(w.submit(&c, test.answers...)), test.want...)
	}
}
