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

// withFailpoints returns what to work on in place of a store, and what the contexts
// of deliveries become: the same. A build with the tag "failpoints" has places in
// them where tests make the process die.
func withFailpoints(s backend, _ *formsvc.Options) (backend, func(context.Context) context.Context, error) {
	return s, func(ctx context.Context) context.Context { return ctx }, nil
}
