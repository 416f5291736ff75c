//go:build !failpoints

package main

import (
	"context"

	"github.com/alecthomas/kong"

	"github.com/formsvc/toolkit/formsvc"
)

// failpointsCommand adds nothing to the commands. A build with the tag "failpoints"
// has one more.
func failpointsCommand() kong.Option { return kong.OptionFunc(func(*kong.Kong) error { return nil }) }

// withFailpoints returns the store and the contexts of deliveries unchanged. A build with the tag "failpoints" adds points
// where tests kill the process.
func withFailpoints(s backend, _ *formsvc.Options) (backend, func(context.Context) context.Context, error) {
	return s, func(ctx context.Context) context.Context { return ctx }, nil
}
