package formsvc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/formsvc/toolkit/formsvc"
)

func each(a formsvc.Answers) (list []formsvc.Answer, err error) {
	err = a.Each(func(name string, values []string) error {
		list = append(list, formsvc.Answer{Name: name, Value: slices.Clone(values)})
		return nil
	})
	return list, err
}

// Each agrees with List, also for text that a database has reformatted.
func TestAnswersEachAgreesWithList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := answerLists().Draw(t, "answers")
		answers := formsvc.NewAnswers(list...)
		var spaced bytes.Buffer
		if err := json.Indent(&spaced, []byte(answers.JSON()), " ", "\t"); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{answers.JSON(), spaced.String() + "\r\n"} {
			if got, err := each(formsvc.StoredAnswers(text)); err != nil || !sameAnswers(got, list) {
				t.Fatalf("%s: %q, %v; want %q", text, got, err, list)
			}
		}
	})
	if got, err := each(formsvc.Answers{}); err != nil || len(got) != 0 {
		t.Errorf("no answers: %q, %v", got, err)
	}
}

func TestAnswersEachStopsAtTheFirstError(t *testing.T) {
	calls, failure := 0, errors.New("enough")
	answers := formsvc.NewAnswers(formsvc.Answer{Name: "a"}, formsvc.Answer{Name: "b"})
	err := answers.Each(func(string, []string) error { calls++; return failure })
	if !errors.Is(err, failure) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// Text that isn't a valid answers object causes an error, wherever the fault is.
func TestAnswersEachRefusesInvalidText(t *testing.T) {
	const good = `{"a":{"value":["x","\u0031"]},"b":{"value":[]}}`
	if _, err := each(formsvc.StoredAnswers(good)); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(good); i++ {
		if got, err := each(formsvc.StoredAnswers(good[:i])); err == nil {
			t.Errorf("%s: %q", good[:i], got)
		}
	}
	for _, text := range []string{
		good + "x", "null", "[]", `{"a":["x"]}`, `{"a":{"values":["x"]}}`, `{"a":{"value":"x"}}`, `{"a":{"value":[1]}}`,
		`{"a":{"value":["x""y"]}}`, `{"a":{"value":[]}"b":{"value":[]}}`, `{"a":{"value":["\q"]}}`, `{"a":{"value":[],"other":1}}`,
		`{,"a":{"value":[]}}`, `{"a":{"value":[,"x"]}}`,
	} {
		if got, err := each(formsvc.StoredAnswers(text)); err == nil {
			t.Errorf("%s: %q", text, got)
		}
	}
}
