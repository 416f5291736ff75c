//go:build long

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
