package formsvc_test

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/formsvc/toolkit/formsvc"
)

// texts generates valid UTF-8 of every kind, including characters that JSON escapes.
func texts() *rapid.Generator[string] {
	awkward := rapid.SampledFrom([]rune("\"\\/\b\f\n\r\t\x00\x1f\x7f{}[]:,<>&~\u2028\u2029\ufffd\ufeff\U0010ffff"))
	return rapid.StringOfN(rapid.OneOf(rapid.Rune(), awkward), 0, 20, -1)
}

// answerLists are answers to modules of different names.
func answerLists() *rapid.Generator[[]formsvc.Answer] {
	one := rapid.Custom(func(t *rapid.T) formsvc.Answer {
		return formsvc.Answer{Name: texts().Draw(t, "name"), Value: rapid.SliceOfN(texts(), 0, 4).Draw(t, "value")}
	})
	return rapid.SliceOfNDistinct(one, 0, 12, func(a formsvc.Answer) string { return a.Name })
}

func sameAnswers(a, b []formsvc.Answer) bool {
	return slices.EqualFunc(a, b, func(a, b formsvc.Answer) bool { return a.Name == b.Name && slices.Equal(a.Value, b.Value) })
}

func TestAnswersRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := answerLists().Draw(t, "answers")
		answers := formsvc.NewAnswers(list...)
		got, err := answers.List()
		if err != nil || !sameAnswers(got, list) {
			t.Fatalf("%q comes back as %q, %v", list, got, err)
		}
		stored := formsvc.StoredAnswers(answers.JSON())
		if stored != answers || stored.JSON() != answers.JSON() {
			t.Fatalf("%s is stored as %s", answers.JSON(), stored.JSON())
		}
		for _, a := range list {
			if value, ok := answers.Get(a.Name); !ok || !slices.Equal(value, a.Value) {
				t.Fatalf("Get(%q) returns %q, %t", a.Name, value, ok)
			}
		}
	})
}

// The caller may change the result of List.
// Answers that any program wrote as JSON keep their order. Other text changes nothing.
func TestAnswersAsJSON(t *testing.T) {
	var got struct{ A formsvc.Answers }
	for text, want := range map[string]string{
		`{"A": {"z": {"value": ["1 \u003c 2", ""], "more": {}}, "a": {"value": []}, "n": {}}}`: `{"A":{"z":{"value":["1 \u003c 2",""]},"a":{"value":[]},"n":{"value":[]}}}`,
		`{"A":{}}`: `{"A":{}}`, `{"A":null}`: `{"A":{}}`,
	} {
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if b, err := json.Marshal(got); err != nil || string(b) != want {
			t.Errorf("%s became %s, %v", text, b, err)
		}
	}
	got.A = formsvc.NewAnswers(formsvc.Answer{Name: "kept"})
	for _, text := range []string{`{"A":[]}`, `{"A":"a"}`, `{"A":{"a":{"value":"b"}}}`, `{"A":{"a":{"value":[1]}}}`, `{"A":{"a":["b"]}}`, `{"A":{"a":{"value":["1"]},"a":{"value":["2"]}}}`} {
		if err := json.Unmarshal([]byte(text), &got); err == nil || got.A.JSON() != `{"kept":{"value":[]}}` {
			t.Errorf("%s: %v, %s", text, err, got.A.JSON())
		}
	}
}

func TestAnswersAreImmutable(t *testing.T) {
	values := []string{"x", "y"}
	answers := formsvc.NewAnswers(formsvc.Answer{Name: "a", Value: values})
	values[0] = "changed"
	list := must(answers.List())
	list[0].Name, list[0].Value[1] = "changed", "changed"
	equal(t, answers.JSON(), `{"a":{"value":["x","y"]}}`, "the answers are now %s")
	if got, _ := answers.Get("a"); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("the answer is now %q", got)
	}
}

// Text that no service wrote causes an error, never a panic or an answer.
func TestInvalidStoredAnswersFail(t *testing.T) {
	for _, text := range []string{
		`{"a\`, `[]`, `"x"`, `1`, `{"a":1}`, `{"a":{"value":"x"}}`,
		`{"a":{"value":[1]}}`, `{"a":{"value":["x"]}}{`, "\x00", "null", `{"a":["x"]}`, `{"a":{"values":["x"]}}`, "{\"a\x01\":{\"value\":[]}}",
		`{"a":{"value":["x""y"]}}`, `{"a":{"value":[]}"b":{"value":[]}}`, `{"a":{"value":["\q"]}}`, `{"a":{"value":[],"other":1}}`,
		`{,"a":{"value":[]}}`, `{"a":{"value":[,"x"]}}`, `{"a":null}`, `{"a":{"value":null}}`, `{"a":{}}`,
	} {
		if list, err := formsvc.StoredAnswers(text).List(); err == nil {
			t.Errorf("%s is read as %q", text, list)
		}
	}
	whole := formsvc.NewAnswers(answer("a\"", "x\n", "y"), answer("b")).JSON()
	for i := 1; i < len(whole); i++ {
		if list, err := formsvc.StoredAnswers(whole[:i]).List(); err == nil {
			t.Errorf("%s is read as %q", whole[:i], list)
		}
	}
	// An update that would have to rewrite them fails and loses nothing.
	w := newWorld(t)
	c := w.campaign()
	r := formsvc.Response{
		ID: formsvc.FloorID(start()), AccountID: w.account, CampaignID: c.ID, Reference: "R", Status: "pending",
		User: ada(), Answers: formsvc.StoredAnswers(`{"a":`), Version: 1, CreatedAt: start(), UpdatedAt: start(),
	}
	wantError(t, w.store.CreateResponse(w.ctx, r, 1, formsvc.Change{}), nil)
	if _, err := w.update(&r, formsvc.ResponsePatch{Answers: []formsvc.AnswerPatch{set("a", "x")}}); err == nil {
		t.Error("broken answers were overwritten")
	}
	if got := w.updated(&r, formsvc.ResponsePatch{Status: new("validated")}); got.Answers != r.Answers {
		t.Errorf("the answers are now %s", got.Answers.JSON())
	}
}
