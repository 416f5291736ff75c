package snippets

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const vectorsFile = "../../../webhook/webhooktest/vectors.json"

// A vector is a golden vector for x-service-signature.
type vector struct {
	Name    string              `json:"name"`
	Secrets []string            `json:"secrets"`
	Headers map[string][]string `json:"headers"`
	Body    []byte              `json:"body"`
	Fill    *fill               `json:"fill,omitempty"`
	Want    string              `json:"want"`
}

type fill struct {
	Byte  byte `json:"byte"`
	Count int  `json:"count"`
}

// A language is the snippet of one language.
type language struct {
	file     string   // the snippet
	compares string   // the constant-time comparison
	programs []string // the required programs
	lines    bool     // whether it reads lines instead of JSON
	// prepare returns a function that runs the snippet on a file of vectors.
	prepare func(t *testing.T) func(file string) *exec.Cmd
}

func languages() map[string]language {
	interpreted := func(snippet, compares, interpreter string, args ...string) language {
		return language{file: snippet, compares: compares, programs: []string{interpreter}, prepare: func(t *testing.T) func(string) *exec.Cmd {
			return func(file string) *exec.Cmd {
				return exec.CommandContext(t.Context(), interpreter, append(slices.Clone(args), file)...)
			}
		}}
	}
	return map[string]language{
		"Node":   interpreted("verify.mjs", "timingSafeEqual(", "node", "vectors.mjs"),
		"Python": interpreted("verify.py", "hmac.compare_digest(", "python3", "-B", "vectors.py"),
		"Ruby":   interpreted("verify.rb", "OpenSSL.secure_compare(", "ruby", "vectors.rb"),
		"PHP":    interpreted("verify.php", "hash_equals(", "php", "vectors.php"),
		"Java": {
			file: "Verify.java", compares: "MessageDigest.isEqual(", programs: []string{"javac", "java"}, lines: true, prepare: compileJava,
		},
	}
}

func compileJava(t *testing.T) func(string) *exec.Cmd {
	classes := t.TempDir()
	compile := exec.CommandContext(t.Context(), "javac", "-d", classes, "Verify.java", "Vectors.java")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	return func(file string) *exec.Cmd {
		return exec.CommandContext(t.Context(), "java", "-cp", classes, "Vectors", file)
	}
}

// vectors writes a file for the language and returns its name.
func (l language) vectors(t *testing.T, vectors []vector) string {
	content := asLines(vectors)
	if !l.lines {
		content = asJSON(t, vectors)
	}
	file := filepath.Join(t.TempDir(), "vectors")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func asJSON(t *testing.T, vectors []vector) []byte {
	return must(json.Marshal(map[string][]vector{"service": vectors}))
}

// asLines returns the vectors in the format of Vectors.java.
func asLines(vectors []vector) []byte {
	encode := base64.StdEncoding.EncodeToString
	var lines strings.Builder
	for _, v := range vectors {
		if v.Want == "too_large" {
			continue
		}
		signature, body := "-", v.Body
		if values := v.Headers["x-service-signature"]; values != nil {
			signature = encode([]byte(strings.Join(values, ", ")))
		}
		if v.Fill != nil {
			body = bytes.Repeat([]byte{v.Fill.Byte}, v.Fill.Count)
		}
		fields := []string{v.Want, encode([]byte(v.Name)), signature, encode(body)}
		for _, secret := range v.Secrets {
			fields = append(fields, encode([]byte(secret)))
		}
		lines.WriteString(strings.Join(fields, " ") + "\n")
	}
	return []byte(lines.String())
}

// readVectors returns the golden vectors.
func readVectors(t *testing.T) []vector {
	b := must(os.ReadFile(vectorsFile))
	var file struct{ Service []vector }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Service) < 50 {
		t.Fatalf("%d vectors", len(file.Service))
	}
	return file.Service
}

// flipped returns vectors with wrong verdicts, to check that the programs detect failures.
func flipped(vectors []vector) []vector {
	var all []vector
	for _, v := range vectors {
		switch v.Want {
		case "ok":
			v.Want = "mismatch"
		case "too_large":
		default:
			v.Want = "ok"
		}
		all = append(all, v)
	}
	return all
}

// Each snippet returns the right verdict for every golden vector, and its program fails otherwise.
func TestSnippets(t *testing.T) {
	vectors := readVectors(t)
	judged := 0
	for _, v := range vectors {
		if v.Want != "too_large" {
			judged++
		}
	}
	for name, l := range languages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, program := range l.programs {
				if _, err := exec.LookPath(program); err != nil {
					if os.Getenv("CI") == "true" {
						t.Fatal(err)
					}
					t.Skipf("SKIPPED: %v", err)
				}
			}
			right := vectorsFile // as a user would read it
			if l.lines {
				right = l.vectors(t, vectors)
			}
			run := l.prepare(t)
			for file, wrong := range map[string]int{right: 0, l.vectors(t, flipped(vectors)): judged} {
				out, err := run(file).CombinedOutput()
				if !strings.HasSuffix(string(out), fmt.Sprintf("%d vectors\n", judged)) || (err != nil) != (wrong > 0) {
					t.Errorf("%v\n%s", err, out)
				}
				if n := strings.Count(string(out), "WRONG "); n != wrong {
					t.Errorf("%d verdicts are wrong, want %d:\n%s", n, wrong, out)
				}
			}
		})
	}
}

// The snippets compare in constant time, which no verdict can show.
func TestSnippetsCompareInConstantTime(t *testing.T) {
	for name, l := range languages() {
		snippet := must(os.ReadFile(l.file))
		if !strings.Contains(string(snippet), l.compares) {
			t.Errorf("%s: %s compares without %s…)", name, l.file, l.compares)
		}
	}
}

// The guide shows the complete snippets.
func TestGuideShowsTheSnippets(t *testing.T) {
	guide := must(os.ReadFile("../../../webhook/README.md"))
	for name, l := range languages() {
		snippet := must(os.ReadFile(l.file))
		if !strings.Contains(string(guide), "\n"+string(snippet)+"```\n") {
			t.Errorf("the guide does not show %s as it is, for %s", l.file, name)
		}
	}
}

// The guide's line for each router is the one in its example.
func TestGuideShowsTheRouters(t *testing.T) {
	guide := must(os.ReadFile("../../../webhook/README.md"))
	program := must(os.ReadFile("../main.go"))
	shown := 0
	for line := range strings.Lines(string(program)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "router.") && strings.Contains(line, "verifier.EventHandler(") && strings.Contains(string(guide), "\n\t"+line+" // ") {
			shown++
		}
	}
	if shown != 3 {
		t.Errorf("the guide shows the lines of %d routers, want 3", shown)
	}
}

// must returns the result of a call that can't fail here.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}
