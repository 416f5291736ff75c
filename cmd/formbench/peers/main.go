// Command peers runs the systems that formbench compares with. It is River, a job queue, as a webhook sender on
// Postgres and on SQLite; with the argument "pocketbase" it is PocketBase, as a server beside the API. formbench starts
// it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/formsvc/toolkit/cmd/formbench/internal/pocketbase"
	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == pocketbase.Command {
		return servePocketbase(ctx, os.Stdin, os.Stdout)
	}
	return worker.Run(ctx, os.Stdin, os.Stdout, newRiver)
}
