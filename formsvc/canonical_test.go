package formsvc_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

func TestCanonicalAnswers(t *testing.T) {
	for _, x := range []struct {
		label string
		in    []formsvc.Answer
		want  string
	}{
		{"none", nil, `{}`},
		{"no value", []formsvc.Answer{answer("a")}, `{"a":{"value":[]}}`},
		{
			"values in their order, names sorted", []formsvc.Answer{answer("b", "2", "1", "2"), answer("a", ""), answer("B"), answer("10"), answer("9")},
			`{"10":{"value":[]},"9":{"value":[]},"B":{"value":[]},"a":{"value":[""]},"b":{"value":["2","1","2"]}}`,
		},
		{
			"sorted by UTF-16", []formsvc.Answer{answer("\uFFFD"), answer("\U0001F600"), answer("\uE000"), answer("z"), answer("\uD7FF"), answer("ö")},
			"{\"z\":{\"value\":[]},\"ö\":{\"value\":[]},\"\uD7FF\":{\"value\":[]},\"\U0001F600\":{\"value\":[]}," +
				"\"\uE000\":{\"value\":[]},\"\uFFFD\":{\"value\":[]}}",
		},
		{
			"a name that begins another", []formsvc.Answer{answer("ab"), answer("a"), answer("a\U0001F600"), answer("a\uFFFD")},
			"{\"a\":{\"value\":[]},\"ab\":{\"value\":[]},\"a\U0001F600\":{\"value\":[]},\"a\uFFFD\":{\"value\":[]}}",
		},
		{
			"escapes", []formsvc.Answer{answer("q\"\\/", "\b\t\n\f\r", "\x01\x1f\x0b\x7f\u0080\u2028<>&'é")},
			`{"q\"\\/":{"value":["\b\t\n\f\r","\u0001\u001f\u000b` + "\x7f\u0080\u2028<>&'é" + `"]}}`,
		},
		{"the name value", []formsvc.Answer{answer("value", "value"), answer("__proto__", "x")}, `{"__proto__":{"value":["x"]},"value":{"value":["value"]}}`},
	} {
		if got := formsvc.CanonicalAnswers(formsvc.NewAnswers(x.in...)); string(got) != x.want {
			t.Errorf("%s\n got %s\nwant %s", x.label, got, x.want)
		}
	}
	// The same answers in another spelling, as a store may keep them.
	spelled := formsvc.StoredAnswers("{ \"b\\u00e9\" : {\"value\": [\"\\/\"]},\n\"\\u0061\":{\"value\":[]}}")
	if got := formsvc.CanonicalAnswers(spelled); string(got) != `{"a":{"value":[]},"bé":{"value":["/"]}}` {
		t.Errorf("got %s", got)
	}
	if got := formsvc.CanonicalAnswers(formsvc.StoredAnswers(`{"a":`)); got != nil {
		t.Errorf("of no JSON: %s", got)
	}
}

// canonicalizers are programs that read one JSON object a line and write its canonical form,
// without code of ours. The one for Node is the expression in the documentation of
// CanonicalAnswers.
func canonicalizers() map[string][]string {
	return map[string][]string{
		"node": {"-e", `
			for (const line of require("fs").readFileSync(0, "utf8").split("\n").slice(0, -1)) {
				const responses = JSON.parse(line)
				process.stdout.write("{" + Object.keys(responses).sort().map(name =>
					JSON.stringify(name) + ":" + JSON.stringify({value: responses[name].value})).join(",") + "}" + "\n")
			}`},
		"python3": {"-c", `
import json, sys
for line in sys.stdin.buffer.read().split(b"\n")[:-1]:
    r = json.loads(line)
    r = {k: r[k] for k in sorted(r, key=lambda k: k.encode("utf-16-be"))}
    sys.stdout.buffer.write(json.dumps(r, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
`},
	}
}

// Other implementations produce the same bytes for the same answers.
func TestCanonicalAnswersAgreeWithOtherLanguages(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	hard := []rune("\"\\/\b\f\n\r\t\x01\x1f\x7f\u0080\u00e9e\u0301\u2028\u2029\uD7FF\uE000\uFEFF\uFFFD\uFFFF\U00010000\U0001F600\U0010FFFFaAzZ019 _<>&")
	text := func() string {
		var b strings.Builder
		for range random.IntN(5) {
			b.WriteRune(hard[random.IntN(len(hard))])
		}
		return b.String()
	}
	var in, want bytes.Buffer
	for range 2_000 {
		var list []formsvc.Answer
		seen := map[string]bool{}
		for range random.IntN(8) {
			name := text()
			if seen[name] {
				continue
			}
			seen[name] = true
			a := formsvc.Answer{Name: name}
			for range random.IntN(3) {
				a.Value = append(a.Value, text())
			}
			list = append(list, a)
		}
		answers := formsvc.NewAnswers(list...)
		if !json.Valid([]byte(answers.JSON())) {
			t.Fatal(answers.JSON())
		}
		in.WriteString(answers.JSON() + "\n")
		want.Write(append(formsvc.CanonicalAnswers(answers), '\n'))
	}
	ran := 0
	for name, args := range canonicalizers() {
		if _, err := exec.LookPath(name); err != nil {
			continue
		}
		ran++
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Stdin, cmd.Stderr = bytes.NewReader(in.Bytes()), os.Stderr
		got, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ours, theirs := bytes.Split(want.Bytes(), []byte("\n")), bytes.Split(got, []byte("\n"))
		if len(ours) != len(theirs) {
			t.Fatalf("%s: %d lines, want %d", name, len(theirs), len(ours))
		}
		for i := range ours {
			if !bytes.Equal(ours[i], theirs[i]) {
				t.Fatalf("%s makes\n%q, we make\n%q", name, theirs[i], ours[i])
			}
		}
	}
	if ran == 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("neither node nor python3 is here")
		}
		t.Skip("neither node nor python3 is here")
	}
}
