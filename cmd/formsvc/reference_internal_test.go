package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var update = flag.Bool("update", false, "write CONFIGURATION.md anew from the flags")

const referenceIntro = `# Configuration

Every command, flag and variable of formsvc. This file is made from the program's own flags, by
` + "`go test ./cmd/formsvc -run Configuration -update`" + `, and a test fails when it is not what they are.
[README.md](README.md) tells how to set a server up.

A flag wins over its variable, and a variable over the default. Repeatable flags take several values with commas between them as
well, and so do their variables. Lengths of time are written like ` + "`90s`, `15m` or `1h30m`" + `. A value that can't be used ends
the command with status 2 and the name of the flag, before anything is done; any other failure is status 1.

Some variables are not ours, and mean what they mean elsewhere: ` + "`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`," + `
` + "`AWS_REGION` and others for `--blobs s3://…`; `PGPASSWORD`, `PGSSLROOTCERT` and others for `--db postgres://…`; `SSL_CERT_FILE` for" + `
the certificates that we trust; ` + "`GOMEMLIMIT`, `GOMAXPROCS` and `GOGC` for the memory and the processors that we take (`GOGC` is 200 unless you set it)." + `
`

// reference writes the reference of a command line.
func reference(app *kong.Application) string {
	var b strings.Builder
	b.WriteString(referenceIntro)
	b.WriteString("\n## All commands\n\nThese say what data to work on, for every command that needs any.\n\n")
	referenceFlags(&b, app.Flags)
	for _, n := range app.Leaves(true) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", n.FullPath(), cell(n.Help))
		if len(n.Positional) > 0 {
			b.WriteString("\n| argument | |\n|---|---|\n")
			for _, p := range n.Positional {
				fmt.Fprintf(&b, "| `%s` | %s |\n", p.Summary(), cell(p.Help))
			}
		}
		var flags []*kong.Flag
		for at := n; at != app.Node; at = at.Parent {
			flags = append(flags, at.Flags...)
		}
		if len(flags) > 0 {
			b.WriteString("\n")
			referenceFlags(&b, flags)
		}
	}
	return b.String()
}

func referenceFlags(b *strings.Builder, flags []*kong.Flag) {
	b.WriteString("| flag | variable | default | |\n|---|---|---|---|\n")
	for _, f := range flags {
		if f.Hidden || f.Name == "help" {
			continue
		}
		variables, value, help := "", "", cell(f.Help)
		for _, e := range f.Envs {
			variables += " `" + e + "`"
		}
		if f.HasDefault && f.Default != "" {
			value = "`" + f.Default + "`"
		}
		if f.Required {
			help += " Required."
		}
		name := "--" + f.Name
		if f.PlaceHolder != "" {
			name += " " + f.PlaceHolder
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, strings.TrimSpace(variables), value, help)
	}
}

// cell is a text in a table of Markdown.
func cell(s string) string { return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(s) }

// CONFIGURATION.md is what the flags are.
func TestConfigurationIsCurrent(t *testing.T) {
	t.Parallel()
	parser, err := newParser(new(cli))
	if err != nil {
		t.Fatal(err)
	}
	want, path := reference(parser.Model), "CONFIGURATION.md"
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s is stale (%v): go test ./cmd/formsvc -run Configuration -update", path, err)
	}
	for _, n := range parser.Model.Leaves(true) { // nothing is told in two ways
		for _, f := range n.Flags {
			if f.Help == "" || !strings.HasSuffix(f.Help, ".") {
				t.Errorf("%s --%s: the help is no sentence: %q", n.FullPath(), f.Name, f.Help)
			}
		}
	}
}

// What guides and examples name there is: variables wherever they are, and flags behind
// "formsvc serve".
func TestGuidesNameFlags(t *testing.T) {
	t.Parallel()
	parser, err := newParser(new(cli))
	if err != nil {
		t.Fatal(err)
	}
	known := reference(parser.Model)
	variable, flags := regexp.MustCompile(`\bFORMSVC_[A-Z0-9_]*[A-Z0-9]`), regexp.MustCompile(`--[a-z][a-z-]*`)
	for _, path := range []string{
		"README.md", "../../Dockerfile", "../../examples/single/formsvc.service", "../../examples/single/formsvc.env.example",
		"../../examples/single/tls.conf",
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		names := variable.FindAllString(string(text), -1)
		for line := range strings.Lines(string(text)) {
			if _, args, ok := strings.Cut(line, "formsvc serve "); ok {
				names = append(names, flags.FindAllString(args, -1)...)
			}
		}
		if len(names) == 0 {
			t.Errorf("%s names nothing", path)
		}
		for _, name := range names {
			if !strings.Contains(known, "`"+name+"`") && !strings.Contains(known, "`"+name+" ") {
				t.Errorf("%s names %s, which there is not", path, name)
			}
		}
	}
}
