// Command formsvc serves the forms API and delivers its webhooks, and manages
// the accounts, keys and webhooks of a running server.
//
//	formsvc serve
//
// Every flag can also be set in the environment, as FORMSVC_ and the flag's name
// in upper case with _ for -; flags win. "formsvc --help" lists the commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal, the next one ends the program at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// streams are the standard streams of a command. Standard output carries only what a script would read.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// note prints a line for people to standard error.
func (s streams) note(format string, args ...any) {
	_, _ = fmt.Fprintf(s.err, format+"\n", args...)
}

// environment has the variables of the process, as NAME=VALUE.
type environment []string

// lookup returns the value of a variable, and whether it is set.
func (e environment) lookup(name string) (string, bool) {
	for _, v := range e {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

func (e environment) get(name string) string {
	value, _ := e.lookup(name)
	return value
}

// flag returns the value of a flag's variable, or nil.
func (e environment) flag(_ *kong.Context, _ *kong.Path, f *kong.Flag) (any, error) {
	for _, name := range f.Envs {
		if value, ok := e.lookup(name); ok {
			return value, nil
		}
	}
	return nil, nil //nolint:nilnil // as kong wants it
}

// errSilent ends a command with status 1 after it has printed why.
var errSilent = errors.New("")

// usageError ends a command with status 2: a flag or an argument is invalid.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run runs one command and returns its exit status: 0, 1 if it failed, 2 if the command line is invalid.
func run(ctx context.Context, args []string, env environment, stdin io.Reader, stdout, stderr io.Writer) int {
	commands, std := cli{global: global{Env: env}}, streams{stdin, stdout, stderr}
	status := -1
	parser, err := newParser(&commands, kong.Writers(stdout, stderr), kong.Exit(func(code int) { status = code }),
		kong.Resolvers(kong.ResolverFunc(env.flag)), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(std))
	if err != nil {
		_, _ = fmt.Fprintln(std.err, "formsvc:", err)
		return 2
	}
	command, err := parser.Parse(args)
	if status >= 0 { // --help has been answered
		return status
	}
	if err != nil {
		_, _ = fmt.Fprintln(std.err, "formsvc:", err)
		return 2
	}
	if err := command.Run(&commands.global); err != nil {
		err = commands.explainBusy(err)
		if !errors.Is(err, errSilent) { // errors of package formsvc have the prefix already
			_, _ = fmt.Fprintln(std.err, "formsvc:", strings.TrimPrefix(err.Error(), "formsvc: "))
		}
		if _, ok := errors.AsType[usageError](err); ok {
			return 2
		}
		return 1
	}
	return 0
}

// newParser returns the parser of command lines.
func newParser(commands *cli, opts ...kong.Option) (*kong.Kong, error) {
	return kong.New(commands, append(opts, kong.Name("formsvc"), kong.Description("A forms API with signed webhooks, in one binary."),
		kong.DefaultEnvars("FORMSVC"), kong.UsageOnError(), kong.PostBuild(describe), kong.Vars{"version": build()})...)
}

// cli is the command line.
type cli struct {
	global
	ShowVersion kong.VersionFlag `name:"version" env:"-" help:"Print the version of this program."`

	Serve       serveCmd       `cmd:"" help:"Serve the API and deliver webhooks."`
	Accounts    accountsCmd    `cmd:"" help:"Create and list accounts."`
	Keys        keysCmd        `cmd:"" help:"Create, list and revoke API keys."`
	ConsoleLink consoleLinkCmd `cmd:"" name:"console-link" aliases:"settings-link" help:"Print a link that signs in once to the console, for an account."`
	People      peopleCmd      `cmd:"" help:"Invite people to the console, give them roles, and print links to sign in."`
	Webhooks    webhooksCmd    `cmd:"" help:"Manage webhooks, list their deliveries, and send them again."`
	Files       filesCmd       `cmd:"" help:"Find damaged files, and remove stored bytes that belong to no file."`
	Export      exportCmd      `cmd:"" help:"Write the responses of a campaign as CSV or NDJSON."`
	Erase       eraseCmd       `cmd:"" help:"Remove a person's data from an account."`
	Person      personCmd      `cmd:"" help:"Export a person's data from an account."`
	Retention   retentionCmd   `cmd:"" help:"Remove old responses."`
	Audit       auditCmd       `cmd:"" help:"Show the audit trail: who changed keys and webhooks, and erased data."`
	Backup      backupCmd      `cmd:"" help:"Back up the database, the uploaded files and the encryption keys while servers keep running."`
	Restore     restoreCmd     `cmd:"" help:"Restore a backup."`
	Copy        copyCmd        `cmd:"" help:"Move all data to another database: from SQLite to Postgres, or back."`
	Doctor      doctorCmd      `cmd:"" help:"Check everything that a server needs, and say what is wrong and how to fix it."`
	Secrets     secretsCmd     `cmd:"" help:"Rotate the key that encrypts the secrets in the database."`
	Migrate     migrateCmd     `cmd:"" help:"Update the database schema, or list its migrations."`
	Sign        signCmd        `cmd:"" help:"Print the webhook signature of standard input."`
	Verify      verifyCmd      `cmd:"" help:"Check the webhook signature of standard input; exit status 1 if it is wrong."`
	Health      healthCmd      `cmd:"" help:"Check that the server on this machine is ready; exit status 1 if it is not."`
}
