// Command peers runs the systems that formbench compares with: PocketBase, and River as a sender of webhooks. formbench
// starts it:
//
//	peers pocketbase DIRECTORY FULL
//	peers river DSN URL SECRET
//
// It writes the address on which it serves.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
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
	switch {
	case len(args) == 3 && args[0] == "pocketbase":
		return servePocketbase(ctx, args[1], args[2] == "true")
	case len(args) == 4 && args[0] == "river":
		return serveRiver(ctx, args[1], args[2], args[3])
	}
	return fmt.Errorf("want pocketbase or river with arguments, got %q", args)
}

// listen returns a listener on a free port.
func listen(ctx context.Context) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
}

// report tells formbench the address, like the log of formsvc.
func report(l net.Listener) { fmt.Printf("{\"msg\":\"serving\",\"addr\":%q}\n", l.Addr()) }
