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

var update = flag.Bool("update", false, "generate CONFIGURATION.md from the flags")

const referenceIntro = `# Configuration

Every command, flag and variable of formsvc. ` + "`go test ./cmd/formsvc -run Configuration -update`" + ` generates this file from
the program's own flags, and a test fails when it is out of date. To set up a server, read [README.md](README.md).

A flag wins over its variable, and a variable over the default. Repeatable flags and their variables also take several values,
separated by commas. Write a length of time as ` + "`90s`, `15m` or `1h30m`" + `. An invalid value ends the command at once, with status 2
and the name of the flag. Any other failure is status 1.

Some variables belong to other programs and mean what they mean there: ` + "`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`," + `
` + "`AWS_REGION` and others for `--blobs s3://…`; `PGPASSWORD`, `PGSSLROOTCERT` and others for `--db postgres://…`; `SSL_CERT_FILE` for" + `
the certificates to trust; ` + "`GOMEMLIMIT`, `GOMAXPROCS` and `GOGC` for the memory and the processors to use (`GOGC` is 200 unless you set it)." + `
`

// reference returns the reference of a command line.
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
		zero := (f.Default == "0" || f.Default == "0s") && strings.Contains(f.Help, "Defaults to ") // the help names the default
		if f.HasDefault && f.Default != "" && !zero {
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

// cell escapes a text for a Markdown table.
func cell(s string) string { return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(s) }

// CONFIGURATION.md matches the flags.
func TestConfigurationIsCurrent(t *testing.T) {
	t.Parallel()
	parser := must(newParser(new(cli)))
	want, path := reference(parser.Model), "CONFIGURATION.md"
	if *update {
		noError(t, os.WriteFile(path, []byte(want), 0o600))
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s is stale (%v): go test ./cmd/formsvc -run Configuration -update", path, err)
	}
	for _, n := range parser.Model.Leaves(true) { // every help is a sentence
		for _, f := range n.Flags {
			if f.Help == "" || !strings.HasSuffix(f.Help, ".") {
				t.Errorf("%s --%s: the help is no sentence: %q", n.FullPath(), f.Name, f.Help)
			}
		}
	}
}

// Guides and examples name only existing variables and, after "formsvc serve", existing flags.
func TestGuidesNameFlags(t *testing.T) {
	t.Parallel()
	parser := must(newParser(new(cli)))
	known := reference(parser.Model)
	variable, flags := regexp.MustCompile(`\bFORMSVC_[A-Z0-9_]*[A-Z0-9]`), regexp.MustCompile(`--[a-z][a-z-]*`)
	for _, path := range []string{
		"README.md", "../../Dockerfile", "../../examples/single/formsvc.service", "../../examples/single/formsvc.env.example",
		"../../examples/single/tls.conf", "../../examples/cluster/formsvc.env.example", "../../examples/cluster/formsvc@.service",
		"../../examples/cluster/README.md",
	} {
		text := must(os.ReadFile(path))
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
