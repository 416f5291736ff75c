// Command peers is what formbench compares with: River, a job queue, as a webhook
// sender on Postgres and on SQLite. formbench starts it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := worker.Run(ctx, os.Stdin, os.Stdout, newRiver); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}
