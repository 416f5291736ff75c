//go:build long

package main_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The candidates of words, in the order of the help.
func TestComplete(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		words []string
		want  string // the words, with spaces between them
	}{
		{[]string{"se"}, "serve settings-link secrets"},
		{[]string{"keys", ""}, "create list revoke"},
		{[]string{"keys", "re"}, "revoke"},
		{[]string{"serve", "--log-"}, "--log-requests --log-format"},
		{[]string{"serve", "--log-format", ""}, "text json"},
		{[]string{"serve", "--log-format", "j"}, "json"},
		{[]string{"serve", "--log-format=j"}, "--log-format=json"},
		{[]string{"serve", "--log-format", "=", "j"}, "json"}, // as bash tells it
		{[]string{"serve", "--log-format", "="}, "text json"},
		{[]string{"serve", "--log-requests", "--tls-c"}, "--tls-cert"},
		{[]string{"--db", "keys", "webhooks", "rot"}, "rotate"}, // "keys" is a value here
		{[]string{"--db=x", "completion", ""}, "bash zsh fish"},
		{[]string{"webhooks", "create", "--ur"}, "--url"},
		{[]string{"--da"}, "--data"},
		{[]string{"serve", "--data", ""}, ""}, // names of files, which shells know
		{[]string{"serve", "--tls-cert=x"}, ""},
		{[]string{"dance", "--lo"}, ""},
		{[]string{"serve", "--", "--lo"}, ""},
		{[]string{"comple"}, "completion"}, // not what only scripts call
	} {
		r := invocation{args: append([]string{"complete", "--"}, x.words...)}.run(t)
		var words []string
		for line := range strings.Lines(r.out) {
			word, _, _ := strings.Cut(line, "\t")
			words = append(words, word)
		}
		if got := strings.Join(words, " "); r.status != 0 || got != x.want {
			t.Errorf("%q: %q (status %d, %s), want %q", x.words, got, r.status, r.err, x.want)
		}
	}
}

// A user at a terminal types a part, presses Tab, and the shell runs the completed line.
func TestShellsComplete(t *testing.T) {
	t.Parallel()
	for shell, args := range map[string]string{"bash": "--norc --noprofile -i", "zsh": "-f -i"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			terminal, path, dir := lookFor(t, "script"), lookFor(t, shell), t.TempDir()
			cmd := exec.Command(terminal, "-qec", path+" "+args, "/dev/null")
			cmd.Dir = dir
			cmd.Env = append(environment(), "PATH="+filepath.Dir(program(t))+":"+os.Getenv("PATH"), "TERM=dumb", "HOME="+dir, "ZDOTDIR="+dir)
			var said output
			cmd.Stdout, cmd.Stderr = &said, &said
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = in.Close()
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				if t.Failed() {
					t.Logf("the terminal shows:\n%q", said.String())
				}
			})
			prepare := "source <(formsvc completion bash); true > ready\n"
			if shell == "zsh" {
				prepare = "unsetopt beep; autoload -Uz compinit; compinit -u -D; source <(formsvc completion zsh); true > ready\n"
			}
			run := func(what, text, file, want string) {
				_, _ = io.WriteString(in, text)
				eventually(t, what, func() bool {
					content, err := os.ReadFile(filepath.Join(dir, file)) // which may not be whole yet
					return err == nil && strings.Contains(string(content), want)
				})
			}
			run("the shell is ready", prepare, "ready", "")
			run("a command is completed", "formsvc compl\tfi\t > command\n", "command", "# Completions of formsvc for fish")
			run("a flag is completed", "formsvc keys list --j\t --db sqlite:none.db --help > flag\n", "flag", "Usage: formsvc keys list")
			run("a value is completed", "formsvc serve --log-format=js\t --help > value\n", "value", "Usage: formsvc serve")
			run("files are still completed", "cat < comm\t > file\n", "file", "# Completions")
		})
	}
}

func TestFishCompletes(t *testing.T) {
	t.Parallel()
	fish, dir := lookFor(t, "fish"), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cert.pem"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string][]string{
		"formsvc se":                          {"serve", "settings-link", "secrets"},
		"formsvc serve --log-format=":         {"--log-format=text", "--log-format=json"},
		"formsvc --db x keys list --acc":      {"--account"},
		"formsvc completion ":                 {"bash", "zsh", "fish"},
		"formsvc serve --tls-cert ce":         {"cert.pem"},
		"formsvc serve --log-format json --d": {"--drain-delay", "--db", "--data"},
	} {
		cmd := exec.Command(fish, "--no-config", "-c", "formsvc completion fish | source; complete -C '"+line+"'")
		cmd.Dir = dir
		cmd.Env = append(environment(), "PATH="+filepath.Dir(program(t))+":"+os.Getenv("PATH"), "HOME="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var got []string
		for text := range strings.Lines(string(out)) {
			word, _, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "\t")
			got = append(got, word)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
