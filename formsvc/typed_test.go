package formsvc_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

type (
	meal    string
	day     time.Time
	contact struct {
		Mail string `form:"mail,email" label:"Where can we write to?"`
		Site string `form:",url,optional"`
	}
	// A visit has a field of each kind.
	visit struct {
		contact
		Name    string   `form:"name,maxlength=40" help:"In full" placeholder:"Ada"`
		Story   string   `form:"story,longtext,optional"`
		Lunch   meal     `form:"lunch" options:"meat,fish,none"`
		Tracks  []string `form:"tracks,other" options:"go,sql,css"`
		Coming  bool     `form:"coming"`
		Seats   int8     `form:"seats,max=4"`
		Age     *uint    `form:"age"`
		Big     int64    `form:"big"`
		Share   float32  `form:"share"`
		Exact   float64  `form:"exact,optional,min=-1e300"`
		On      day      `form:"on,optional,min=2020-01-01"`
		Days    []day
		Numbers []int16
		Reason  *string            `form:"reason" showif:"lunch=fish|none" pattern:"(?s).*" patternhelp:"Any"`
		Floor   int                `form:"floor" showif:"coming=true"`
		CV      *formsvc.File      `form:"cv,file" accept:".pdf,image/*"`
		Photos  []formsvc.File     `form:"a/b,file,required"`
		Own     map[string]float64 `form:"-"`
		private func()             //nolint:unused // has no question
	}
)

func TestModulesOf(t *testing.T) {
	t.Parallel()
	bound := func(least, greatest formsvc.Bound) formsvc.Module {
		return formsvc.Module{Type: formsvc.NumberModule, Integer: true, Min: least, Max: greatest, Required: true}
	}
	named := func(name string, m formsvc.Module) formsvc.Module { m.Name = name; return m }
	want := []formsvc.Module{
		{Name: "mail", Label: "Where can we write to?", Type: formsvc.EmailModule, Required: true},
		{Name: "Site", Type: formsvc.URLModule},
		{Name: "name", Help: "In full", Placeholder: "Ada", Type: formsvc.TextModule, MaxLength: 40, Required: true},
		{Name: "story", Type: formsvc.LongTextModule},
		{Name: "lunch", Type: formsvc.ChoiceModule, Options: []string{"meat", "fish", "none"}, Required: true},
		{Name: "tracks", Type: formsvc.ChoiceModule, Options: []string{"go", "sql", "css"}, Multiple: true, Other: true},
		{Name: "coming", Type: formsvc.BooleanModule, Required: true},
		named("seats", bound("-128", "4")),
		{Name: "age", Type: formsvc.NumberModule, Integer: true, Min: "0"},
		named("big", bound("", "")),
		{Name: "share", Type: formsvc.NumberModule, Required: true},
		{Name: "exact", Type: formsvc.NumberModule, Min: "-1e300"},
		{Name: "on", Type: formsvc.DateModule, Min: "2020-01-01"},
		{Name: "Days", Type: formsvc.DateModule, Multiple: true},
		{Name: "Numbers", Type: formsvc.NumberModule, Integer: true, Min: "-32768", Max: "32767", Multiple: true},
		{Name: "reason", Type: formsvc.TextModule, Pattern: "(?s).*", PatternHelp: "Any", ShowIf: &formsvc.Condition{Module: "lunch", Equals: []string{"fish", "none"}}},
		named("floor", formsvc.Module{
			Type: formsvc.NumberModule, Integer: true, Required: true, ShowIf: &formsvc.Condition{Module: "coming", Equals: []string{"true"}},
		}),
		{Name: "cv", Type: formsvc.FileModule, Accept: []string{".pdf", "image/*"}},
		{Name: "a/b", Type: formsvc.FileModule, Multiple: true, Required: true},
	}
	got := must(formsvc.ModulesOf[visit]())
	for i := range min(len(got), len(want)) {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("got  %+v\nwant %+v", got[i], want[i])
		}
	}
	equal(t, len(got), len(want), "%d modules")
}

// invalidType checks that none of the functions takes a T, and that the error names it and the field.
func invalidType[T any](t *testing.T, want ...string) {
	t.Helper()
	var zero T
	_, err := formsvc.ModulesOf[T]()
	_, err2 := formsvc.Encode(zero)
	_, err3 := formsvc.Decode[T](formsvc.Answers{})
	for _, err := range []error{err, err2, err3} {
		for _, text := range append(want, reflect.TypeFor[T]().String()) {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%T: error %v, want one with %q", zero, err, text)
			}
		}
	}
}

func TestTypedFormsRefuseTypes(t *testing.T) {
	t.Parallel()
	type twice struct {
		A string `form:"x"`
		B string `form:"x"`
	}
	type withMap struct{ M map[string]string }
	type withPointer struct{ *contact }
	invalidType[string](t, "struct")
	invalidType[*visit](t, "struct")
	invalidType[twice](t, "field B", "unique")
	invalidType[withMap](t, "field M", "map[string]string")
	invalidType[withPointer](t, "field contact")
	invalidType[struct{ C contact }](t, "field C")
	invalidType[struct{ P **string }](t, "field P")
	invalidType[struct{ F func() }](t, "field F")
	invalidType[struct{ U uintptr }](t, "field U")
	invalidType[struct {
		hidden string `form:"hidden"`
	}](t, "field hidden")
	invalidType[struct {
		N int `form:"n,email"`
	}](t, "field N", "string")
	invalidType[struct {
		N int8 `form:"n,max=128"`
	}](t, "field N", "max must be between -128 and 127")
	invalidType[struct {
		D time.Time `form:"d,min=yesterday"`
	}](t, "field D", "min")
	invalidType[struct {
		S string `form:"s,omitempty"`
	}](t, "field S", `"omitempty"`)
	invalidType[struct {
		S string `form:"s,maxlength=few"`
	}](t, "field S", "maxlength")
	invalidType[struct {
		S string `form:"email"`
	}](t, "field S", "email")
	invalidType[struct {
		S string `showif:"other=1"`
	}](t, "field S", "earlier")
}

func TestDecode(t *testing.T) {
	t.Parallel()
	got, err := formsvc.Decode[visit](formsvc.NewAnswers(answer("seats", "1e2"), answer("age", "1.50e1"), answer("big", "-9223372036854775808"),
		answer("exact", "1e-2"), answer("on", "2026-02-28"), answer("coming"), answer("Numbers"), answer("reason", ""), answer("cv", "x"),
		answer("unknown", "y"), answer("tracks", "rust")))
	want := visit{
		Seats: 100, Age: new(uint(15)), Big: math.MinInt64, Exact: .01, On: day(time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC)),
		Numbers: []int16{}, Reason: new(""), Tracks: []string{"rust"},
	}
	if !reflect.DeepEqual(got, want) || err != nil {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
}

// TestDecodeNamesWhatDoesNotFit gives values of another form.
func TestDecodeNamesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	got, err := formsvc.Decode[visit](formsvc.NewAnswers(answer("seats", "128"), answer("age", "-1"), answer("big", "9223372036854775808"),
		answer("share", "1e39"), answer("exact", "NaN"), answer("on", "28.2.2026"), answer("coming", "yes"), answer("Numbers", "1", "2.5", "40000"),
		answer("name", "Ada", "Eve"), answer("lunch", "fish"), answer("floor", "1e999")))
	wantFaults(t, err, "/responses/seats/value/0 out_of_range", "/responses/age/value/0 out_of_range", "/responses/big/value/0 out_of_range",
		"/responses/share/value/0 out_of_range", "/responses/exact/value/0 invalid_number", "/responses/on/value/0 invalid_date",
		"/responses/coming/value/0 invalid_boolean", "/responses/Numbers/value/1 not_integer", "/responses/Numbers/value/2 out_of_range",
		"/responses/name/value too_many", "/responses/floor/value/0 out_of_range")
	if !reflect.DeepEqual(got, visit{Lunch: "fish"}) {
		t.Errorf("got %+v, want what fits", got)
	}
	if _, err := formsvc.Decode[visit](formsvc.StoredAnswers("no JSON")); err == nil {
		t.Error("damaged answers are accepted")
	}
}

func TestEncodeNamesWhatTheFormRefuses(t *testing.T) {
	t.Parallel()
	_, err := formsvc.Encode(visit{
		Name: "\xff", Lunch: "soup", Seats: 5, Share: float32(math.Inf(1)), Exact: math.NaN(), contact: contact{Mail: "ada"},
		Days: []day{day(start()), day(start().AddDate(9000, 0, 0))},
	})
	wantFaults(t, err, "/responses/mail/value/0 invalid_email", "/responses/name/value/0 invalid_utf8", "/responses/lunch/value/0 unknown_option",
		"/responses/seats/value/0 out_of_range", "/responses/share/value/0 invalid_number", "/responses/exact/value/0 invalid_number",
		"/responses/Days/value/1 invalid_date")
}

// TestEncodeOmitsWhatIsNoAnswer encodes zero values: of hidden questions they are omitted, of required numbers they aren't.
func TestEncodeOmitsWhatIsNoAnswer(t *testing.T) {
	t.Parallel()
	names := func(v visit) (list []string) {
		for _, a := range must(formsvc.Encode(v)) {
			list = append(list, a.Name)
		}
		return list
	}
	want := []string{"coming", "seats", "big", "share"}
	equalAll(t, names(visit{}), want, "got %q")
	equalAll(t, names(visit{Coming: true}), append(want, "floor"), "when shown: got %q")
	equalAll(t, names(visit{Floor: 3}), append(want, "floor"), "a hidden one: got %q")
}

// FuzzTypedForm encodes values, lets the campaign of their type check them, and decodes them.
func FuzzTypedForm(f *testing.F) {
	w := newWorld(f)
	c := w.campaign(must(formsvc.ModulesOf[visit]())...)
	f.Add("Ada", "A \"story\"\n", 3, int64(1<<53+1), 0.1, uint16(0))
	f.Add("é", "", -128, int64(math.MinInt64), math.Copysign(0, -1), uint16(0xffff))
	f.Add(" 名", "<>", 0, int64(math.MaxInt64), math.SmallestNonzeroFloat64, uint16(0x5555))
	f.Add("x", "\u2028", 1, int64(-1), math.Nextafter(1e21, 0), uint16(0xaaaa))
	f.Add("x", "\x00", 1, int64(-1), math.Inf(1), uint16(1))
	f.Fuzz(func(t *testing.T, name, story string, seats int, big int64, exact float64, bits uint16) {
		bit := func(n int) bool { return bits>>n&1 == 1 }
		in := visit{
			contact: contact{Mail: "ada@example.com"}, Name: name, Story: story, Lunch: []meal{"meat", "fish"}[bits&1], Seats: int8(seats),
			Big: big, Coming: bit(1), Share: float32(exact), Exact: exact,
		}
		on := day(time.Date(2020, 1, 1+int(bits), 0, 0, 0, 0, time.UTC))
		if bit(2) {
			in.Age, in.On, in.Site = new(uint(big)), on, "https://example.com/"+name
		}
		if bit(3) {
			in.Tracks, in.Days = []string{"go", "css"}[:bits&1], []day{on, on}
		}
		if bit(4) {
			in.Numbers = []int16{int16(seats), int16(big)}
		}
		if bit(0) && bit(5) {
			in.Reason = &story
		}
		if bit(1) {
			in.Floor = seats
		}
		answers, err := formsvc.Encode(in)
		if err != nil {
			wantFaultsIn(t, err, "/responses/")
			return
		}
		refused := w.svc.Responses.Check(t.Context(), &c, formsvc.ResponseInput{User: ada(), Answers: answers})
		if refused != nil && slices.ContainsFunc(faults(refused), func(s string) bool { return !strings.HasSuffix(s, " required") }) {
			t.Errorf("%+v: the form refuses %+v: %v", in, answers, refused)
		}
		if out := must(formsvc.Decode[visit](formsvc.NewAnswers(answers...))); !reflect.DeepEqual(in, out) || math.Signbit(float64(in.Share)) != math.Signbit(float64(out.Share)) {
			t.Errorf("got  %+v\nwant %+v", out, in)
		}
	})
}

// wantFaultsIn fails the test unless err is a *[formsvc.ValidationError] with pointers that begin so.
func wantFaultsIn(t *testing.T, err error, prefix string) {
	t.Helper()
	for _, fault := range faults(err) {
		if !strings.HasPrefix(fault, prefix) {
			t.Errorf("error %v", err)
		}
	}
}
