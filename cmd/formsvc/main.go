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
	"syscall"

	"github.com/alecthomas/kong"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the next one ends the program at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// streams are where a command reads and writes. Standard output carries only
// what a script would want to read.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// errSilent ends a command with status 1 when it has said why.
var errSilent = errors.New("")

// usageError ends a command with status 2: the value of a flag or an argument
// can't be used.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run runs one command and returns its exit status: 0, 1 when it failed, 2 when
// it was not understood.
func run(ctx context.Context, args []string, std streams) int {
	var commands cli
	status := -1
	parser, err := newParser(&commands, kong.Writers(std.out, std.err), kong.Exit(func(code int) { status = code }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(std))
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
		if !errors.Is(err, errSilent) {
			_, _ = fmt.Fprintln(std.err, "formsvc:", err)
		}
		if _, ok := errors.AsType[usageError](err); ok {
			return 2
		}
		return 1
	}
	return 0
}

// newParser returns what reads command lines.
func newParser(commands *cli, opts ...kong.Option) (*kong.Kong, error) {
	return kong.New(commands, append(opts, kong.Name("formsvc"), kong.Description("A forms API with signed webhooks, in one binary."),
		kong.DefaultEnvars("FORMSVC"), kong.UsageOnError(), failpointsCommand())...)
}

// cli is the command line.
type cli struct {
	global
	ShowVersion versionFlag `name:"version" env:"-" help:"Print the version of this program."`

	Serve        serveCmd        `cmd:"" help:"Serve the API and deliver webhooks."`
	Accounts     accountsCmd     `cmd:"" help:"Create and list accounts."`
	Keys         keysCmd         `cmd:"" help:"Create, list and revoke API keys."`
	SettingsLink settingsLinkCmd `cmd:"" name:"settings-link" help:"Print a link that signs in to the settings of an account, once."`
	Webhooks     webhooksCmd     `cmd:"" help:"Manage webhooks, and see and repeat what was sent to them."`
	Files        filesCmd        `cmd:"" help:"Find files that are damaged, and remove stored bytes that belong to no file."`
	Export       exportCmd       `cmd:"" help:"Write the responses of a campaign, as CSV or NDJSON."`
	Erase        eraseCmd        `cmd:"" help:"Remove what an account has of a person; with --dry-run, say what there is."`
	Retention    retentionCmd    `cmd:"" help:"Remove responses that are old."`
	Audit        auditCmd        `cmd:"" help:"Show who did what: keys, webhooks, erasures."`
	Backup       backupCmd       `cmd:"" help:"Copy the database, the uploaded files and the keys of the secrets, while servers go on."`
	Restore      restoreCmd      `cmd:"" help:"Bring a backup back."`
	Copy         copyCmd         `cmd:"" help:"Move all data to another database: from SQLite to Postgres, or back."`
	Doctor       doctorCmd       `cmd:"" help:"Look at everything that a server needs, and say what is wrong and what to do about it."`
	Secrets      secretsCmd      `cmd:"" help:"Exchange the key that secrets in the database are encrypted under."`
	Migrate      migrateCmd      `cmd:"" help:"Bring the database schema up to date, or show how far it is."`
	Sign         signCmd         `cmd:"" help:"Print the webhook signature of standard input."`
	Verify       verifyCmd       `cmd:"" help:"Check the webhook signature of standard input; exit status 1 if it is wrong."`
	Listen       listenCmd       `cmd:"" help:"Receive webhooks on this machine and print them, for development."`
	Health       healthCmd       `cmd:"" help:"Ask the server on this machine whether it is ready; exit status 1 if it is not."`
	Version      versionCmd      `cmd:"" help:"Print the version of this program, its revision, and the Go that built it."`
	Completion   completionCmd   `cmd:"" help:"Print a script that makes a shell complete command lines."`
	Complete     completeCmd     `cmd:"" hidden:"" help:"Print what the last word may be, for the scripts of completion."`
}
